"""How one operation is protected."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from enum import Enum
from functools import cached_property
from typing import Final, Literal

from . import conf


class Default(Enum):
    """Stands for "what the setting says, when it is used"."""

    DEFAULT = "default"


DEFAULT: Final = Default.DEFAULT
Unset = Literal[Default.DEFAULT]


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The options of one operation. Those left at ``DEFAULT`` follow the setting of the same name.

    :raises ValueError: when an option can do nothing but harm.
    """

    operation: str | None = None
    """A stable name such as ``orders.create``; by default the method and the route."""

    required: bool | Unset = DEFAULT
    """Whether a request without a key is refused, or runs unprotected."""

    retention: timedelta | Unset | None = DEFAULT
    """How long the outcome is replayed, from its completion on; ``None`` is for ever."""

    wait: timedelta | Unset = DEFAULT
    """How long a repeat waits for the running first before it is told "in progress"."""

    lease: timedelta | None = None
    """For work that leaves this database: how long a claim holds unattended; ``None`` for work inside it."""

    replay_first: bool | Unset = DEFAULT
    """Whether to look for an outcome before the transaction: replays are faster, first requests slower."""

    remember: Iterable[int] | Unset = DEFAULT
    """Statuses from 400 to 499 that are kept, besides every 2xx and 3xx."""

    ignored_fields: tuple[str, ...] = ()
    """Fields that may differ in a repeat; dots lead into JSON members: ``client.sent_at``."""

    headers: tuple[str, ...] = ()
    """Headers of the answer that are kept besides the usual ones."""

    body_limit: int | Unset = DEFAULT
    """Bytes; a longer body is not kept, and the repeat gets status and headers alone."""

    methods: frozenset[str] = frozenset({"POST", "PATCH"})
    """Guarded methods; on others the header is ignored."""

    short_window: timedelta | None = None
    """For views, with ``IDEMPOTENCY_CACHE``: how long the same request without a key, or with another one,
    is refused as a second click; ``None`` lets it run."""

    using: str | None = None
    """The database of both the handler's writes and the record; by default ``IDEMPOTENCY_DATABASE``."""

    def __post_init__(self) -> None:
        self._check_types()
        if self.remember is not DEFAULT:
            object.__setattr__(self, "remember", frozenset(self.remember))
            check_remember(self.remember)
        if isinstance(self.retention, timedelta) and self.retention <= timedelta(0):
            raise ValueError("retention must be longer than zero; None keeps the outcome for ever.")
        if isinstance(self.wait, timedelta) and self.wait < timedelta(0):
            raise ValueError("wait cannot be negative; timedelta(0) does not wait.")
        if self.lease is not None and self.lease <= timedelta(0):
            raise ValueError("lease must be longer than zero; None is for work that stays in this database.")
        if self.short_window is not None and self.short_window < timedelta(milliseconds=1):
            raise ValueError("short_window must be at least a millisecond; None is for no window.")
        if "set-cookie" in {name.lower() for name in self.headers}:
            raise ValueError("Set-Cookie is never kept: a repeat would get the first caller's session.")
        object.__setattr__(self, "methods", frozenset(method.upper() for method in self.methods))

    def _check_types(self) -> None:
        for name in ("methods", "headers", "ignored_fields", "remember"):
            if isinstance(value := getattr(self, name), str | int):
                raise TypeError(f"{name} takes a collection, such as [{value!r}], not {value!r} alone.")
        for name in ("retention", "wait", "lease", "short_window"):
            if not isinstance(value := getattr(self, name), timedelta | Default | None):
                raise TypeError(f"{name} takes a timedelta, such as timedelta(seconds=30), not {value!r}.")

    def resolve(self) -> "Policy":
        """Return the same policy with the settings of this moment filled in."""
        if not self._open:
            return self
        return replace(self, **{name: conf.get(name.upper()) for name in self._open})

    @cached_property
    def _open(self) -> list[str]:
        """The options that follow their settings."""
        return [field.name for field in fields(self) if getattr(self, field.name) is DEFAULT]

    def keeps(self, status: int) -> bool:
        """Tell whether an answer of this status is worth keeping. Ask a resolved policy."""
        return 200 <= status < 400 or status in self.remember  # type: ignore[operator]


def check_remember(statuses: Iterable[int]) -> None:
    """:raises ValueError: when a status is not a 4xx."""
    if wrong := [status for status in statuses if not 400 <= status < 500]:
        raise ValueError(
            f"remember takes statuses from 400 to 499, not {wrong}: 2xx and 3xx are kept anyway, a 5xx never."
        )
