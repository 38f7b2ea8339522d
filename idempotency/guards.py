"""The short-window guard: a second click within a second or so, without a key or with a fresh one.

An aid that saves work and never decides: without the cache, or with one that fails, everything passes.
"""

import time
from collections.abc import Callable
from datetime import timedelta
from hashlib import blake2b
from secrets import token_bytes
from typing import TypeVar

from django.http.response import HttpResponseBase

from . import caching, engine
from .exceptions import DuplicateSubmission
from .values import Operation

Answer = TypeVar("Answer", bound=HttpResponseBase)


def once_within(window: timedelta | None, operation: Operation, answer: Callable[[], Answer]) -> Answer:
    """Call ``answer`` unless the same was asked within the window, under no key or under another one.

    The same: the same fingerprint, of the same caller, at the same address. A repeat under the same key
    passes, for it gets the first's outcome. An answer of 4xx or 5xx and an exception end the window.

    :raises DuplicateSubmission: when it was; nothing was called.
    """
    if window is None or operation.fingerprint is None:
        return answer()
    name, mark = _name(operation), _mark(operation)
    ends_at = time.monotonic() + window.total_seconds()
    if not caching.add(name, mark, window):
        _refuse_another(name, mark, window, operation)
        return answer()
    return _released_on_failure(name, ends_at, answer)


def _refuse_another(name: str, mark: bytes, window: timedelta, operation: Operation) -> None:
    if caching.get(name) in (mark, None):
        return
    error = DuplicateSubmission(window)
    engine.refuse(error, operation if operation.key else None)
    raise error


def _released_on_failure(name: str, ends_at: float, answer: Callable[[], Answer]) -> Answer:
    try:
        response = answer()
    except BaseException:
        _release(name, ends_at)
        raise
    if response.status_code >= 400:
        _release(name, ends_at)
    return response


def _release(name: str, ends_at: float) -> None:
    """Let the next one in; a window that has ended may be another's by now."""
    if time.monotonic() < ends_at:
        caching.delete(name)


def _name(operation: Operation) -> str:
    digest = blake2b(digest_size=16)
    for part in (operation.name.encode(), operation.scope.encode("utf-8", "surrogatepass")):
        digest.update(len(part).to_bytes(8, "big") + part)
    digest.update(operation.fingerprint or b"")
    return f"idempotency:window:{digest.hexdigest()}"


def _mark(operation: Operation) -> bytes:
    """Say who was first; no two requests without a key are one."""
    return operation.id.bytes if operation.key else token_bytes(16)
