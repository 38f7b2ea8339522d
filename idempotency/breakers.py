"""A circuit breaker: keeps a helper that is dead, hangs or is slow from costing every request its timeout.

    closed ──several failures or slow answers in a row──► open ──after a pause, one probe──► closed
                                                           ▲                       │
                                                           └────────failed─────────┘

The state is this process's own, and no thread stands behind it.
"""

import logging
import time
from collections.abc import Callable
from datetime import timedelta
from threading import Lock
from typing import Final, TypeVar

T = TypeVar("T")

OK: Final = "ok"
DEGRADED: Final = "degraded"

FAILURES: Final = 3
"""In a row; each may cost the caller a timeout, so few."""

SLOW: Final = timedelta(milliseconds=100)
"""Longer than a SELECT, which the helper shall save."""

PAUSE: Final = timedelta(seconds=5)
"""Between two probes: a helper that hangs costs one caller in so many seconds its timeout."""

logger = logging.getLogger("idempotency")

_breakers: Final[dict[str, "Breaker"]] = {}


class Breaker:
    """Guards calls of one helper. Threads may share it."""

    def __init__(
        self, name: str, *, failures: int = FAILURES, slow: timedelta = SLOW, pause: timedelta = PAUSE
    ) -> None:
        self.name = name
        self._allowed = failures
        self._slow = slow.total_seconds()
        self._pause = pause.total_seconds()
        self._lock = Lock()
        self._failures = 0
        self._closed_until: float | None = None  # the way to the helper; None: it is open to all

    @property
    def state(self) -> str:
        """``"ok"``, or ``"degraded"`` while calls are spared."""
        return OK if self._closed_until is None else DEGRADED

    def call(self, fn: Callable[[], T], *, otherwise: T, errors: tuple[type[Exception], ...]) -> T:
        """Return what ``fn`` returns; ``otherwise`` where it raises one of ``errors``, or is not called.

        :raises Exception: whatever else ``fn`` raises, which is not the helper's fault.
        """
        if not self._admits():
            return otherwise
        began = time.monotonic()
        try:
            result = fn()
        except errors as error:
            self._failed(type(error).__name__)
            return otherwise
        if time.monotonic() - began > self._slow:
            self._failed("too slow")
        elif self._failures:
            self._succeeded()
        return result

    def _admits(self) -> bool:
        if self._closed_until is None:
            return True
        with self._lock:
            now = time.monotonic()
            if self._closed_until is not None and now < self._closed_until:
                return False
            if self._closed_until is not None:
                self._closed_until = now + self._pause  # for all but this probe
            return True

    def _failed(self, reason: str) -> None:
        with self._lock:
            self._failures += 1
            if self._failures < self._allowed:
                return
            if self._closed_until is None:
                logger.warning("cache %r fails (%s): it is left alone, and tried again", self.name, reason)
            self._closed_until = time.monotonic() + self._pause

    def _succeeded(self) -> None:
        with self._lock:
            self._failures = 0
            if self._closed_until is not None:
                logger.warning("cache %r works again", self.name)
            self._closed_until = None


def breaker(name: str) -> Breaker:
    """Return this process's breaker of that name."""
    return _breakers.get(name) or _breakers.setdefault(name, Breaker(name))


def state() -> str:
    """``"degraded"`` while one of this process's breakers spares calls, else ``"ok"``."""
    return DEGRADED if any(each.state == DEGRADED for each in _breakers.values()) else OK


def reset() -> None:
    """Forget all that was learnt, as a new process."""
    _breakers.clear()
