"""Run an operation once: claim, handler and outcome in one transaction.

    cache ─hit────► replay
      │
    look ──found──► replay
      │
    claim ──a rival holds it──► OperationInProgress
      │
    handler ──raised, or not worth keeping──► all rolled back, the key is free
      │
    outcome ──commit──► executed

Every adapter builds an :class:`~idempotency.values.Operation` and calls :func:`run`.
"""

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeVar
from uuid import UUID

from django.db import DatabaseError, InterfaceError, OperationalError, connections, router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.translation import gettext_lazy as _

from . import claims, conf, dialects, replays, signals
from .exceptions import IdempotencyError, KeyReused, OperationInProgress, StoreUnavailable
from .models import IdempotencyRecord
from .policies import Policy
from .rows import Busy, Found
from .values import Operation, Outcome, Run

Result = TypeVar("Result")

Handler = Callable[[], tuple[Any, Outcome | None]]
"""Does the work; returns what the caller gets now, and the outcome to keep (``None``: roll it all back)."""

BACKOFF: Final = timedelta(milliseconds=10)
"""The longest pause before the first rerun; it doubles, and chance spreads the rivals."""

PATIENCE: Final = timedelta(seconds=5)
"""After this long no rerun is begun: a lock wait may have taken the client's time already."""

logger = logging.getLogger("idempotency")

_running: ContextVar[frozenset[tuple[str, UUID]]] = ContextVar("running", default=frozenset())


def run(
    operation: Operation, handler: Handler, *, policy: Policy, before_rerun: Callable[[], None] | None = None
) -> Run:
    """Run ``handler`` unless the operation has an outcome already.

    The handler's writes (on the policy's database) and its outcome are committed together or not at all.
    It runs inside ``atomic()``: of an outer transaction where there is one, else of its own, and then a
    serialization failure or deadlock runs it again, after ``before_rerun`` has rewound what it consumed.

    :raises KeyReused: when the key has an outcome with another fingerprint; nothing ran.
    :raises OperationInProgress: when a rival holds the claim, or rivals made the transaction fail too often.
    :raises StoreUnavailable: when the database cannot be reached, or broke during the commit.
    :raises Exception: whatever the handler raises, after everything is rolled back.
    """
    policy = policy.resolve()
    try:
        return _run(operation, handler, policy, before_rerun)
    except IdempotencyError as error:
        refuse(error, operation)
        raise


def refuse(error: IdempotencyError, operation: Operation | None = None) -> None:
    """Tell the receivers of ``refused`` that nothing was done."""
    signals.refused.send_robust(sender=None, reason=error.code, operation=operation)


def database(policy: Policy) -> str:
    """Return the alias of the database that holds both the record and the handler's writes."""
    return policy.using or conf.get("DATABASE") or router.db_for_write(IdempotencyRecord)


def rerun(attempt: Callable[[], Result], before: Callable[[], None] | None = None) -> Result:
    """Call ``attempt``, which owns its transaction, until no rival makes it fail; bounded in number and time.

    ``before`` is called before each further attempt.

    :raises OperationInProgress: when the rivals are too many.
    """
    started = time.monotonic()
    for number in range(1 + conf.get("RERUNS")):
        if number:
            time.sleep(random.random() * BACKOFF.total_seconds() * 2**number)  # noqa: S311
            if before:
                before()
        try:
            return attempt()
        except DatabaseError as error:
            if not dialects.is_conflict(error):
                raise
            conflict = error
            if time.monotonic() - started > PATIENCE.total_seconds():
                break
    raise in_progress() from conflict


def _run(
    operation: Operation, handler: Handler, policy: Policy, before_rerun: Callable[[], None] | None
) -> Run:
    alias = database(policy)
    if found := replays.get(alias, operation):
        return replay(operation, found)
    connection = connections[alias]
    if connection.in_atomic_block:
        return _within(connection, operation, handler, policy)
    if policy.replay_first and (found := _peek(connection, operation)):
        return replay(operation, found, alias=alias)
    return rerun(partial(_once, connection, operation, handler, policy), before_rerun)


def _peek(connection: BaseDatabaseWrapper, operation: Operation) -> Found | None:
    with available():
        return claims.claim(connection.alias, operation).peek()


@contextmanager
def available() -> Iterator[None]:
    """Turn a database that cannot be reached into the error that says so."""
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        _refuse_if_unavailable(error)
        raise


def _refuse_if_unavailable(error: Exception) -> None:
    if dialects.is_conflict(error) or not dialects.is_unavailable(error):
        return
    logger.warning("the database could not be reached, or broke during a commit", exc_info=error)
    raise StoreUnavailable(conf.get("RETRY_AFTER")) from error


def _within(connection: BaseDatabaseWrapper, operation: Operation, handler: Handler, policy: Policy) -> Run:
    """Run inside the caller's transaction, which a conflict has doomed: only its owner can run it again."""
    try:
        return _once(connection, operation, handler, policy)
    except StoreUnavailable:
        connection.set_rollback(True)  # there is nothing left to commit
        raise
    except DatabaseError as error:
        if not dialects.is_conflict(error) or _is_ours(connection):
            raise
        connection.set_rollback(True)
        raise in_progress() from error


def _is_ours(connection: BaseDatabaseWrapper) -> bool:
    """Tell whether an operation is at work on this connection, which decides what a conflict means."""
    return any(alias == connection.alias for alias, _ in _running.get())


class _Discard(Exception):
    """Leaves the transaction so that everything in it is rolled back."""

    def __init__(self, value: Any) -> None:
        self.value = value


class _Overtaken(Exception):
    """A rival's record came first."""


def _once(connection: BaseDatabaseWrapper, operation: Operation, handler: Handler, policy: Policy) -> Run:
    in_handler = False
    try:
        with transaction.atomic(connection.alias):
            claim = claims.claim(connection.alias, operation)
            if found := _attempt(claim, policy):
                return replay(operation, found, alias=connection.alias)
            in_handler = True
            value, outcome = _call(connection, operation, handler)
            in_handler = False
            if outcome is None:
                raise _Discard(value)
            kept = Found.of(operation, outcome, retention=policy.retention)  # type: ignore[arg-type]
            if not claim.complete(outcome, retention=policy.retention):  # type: ignore[arg-type]
                raise _Overtaken
            replays.keep_on_commit(connection.alias, operation, kept, instead=claim.expired)
            announce(operation, outcome, expired=claim.expired, alias=connection.alias)
    except _Discard as discard:
        return Run(value=discard.value, outcome=None, replayed=False)
    except _Overtaken:
        return _after_rival(connection, operation, policy)
    except (OperationalError, InterfaceError) as error:
        if not in_handler:
            _refuse_if_unavailable(error)
        raise
    return Run(value=value, outcome=outcome, replayed=False)


def _attempt(claim: claims.AtomicClaim, policy: Policy) -> Found | None:
    if (claim.alias, claim.operation.id) in _running.get():
        raise in_progress()  # a handler that calls its own operation; its locks would let it in
    try:
        return claim.attempt(wait=policy.wait)  # type: ignore[arg-type]
    except Busy as busy:
        raise in_progress() from busy


def _call(
    connection: BaseDatabaseWrapper, operation: Operation, handler: Handler
) -> tuple[Any, Outcome | None]:
    token = _running.set(_running.get() | {(connection.alias, operation.id)})
    try:
        return handler()
    finally:
        _running.reset(token)


def _after_rival(connection: BaseDatabaseWrapper, operation: Operation, policy: Policy) -> Run:
    with transaction.atomic(connection.alias):
        if found := _attempt(claims.claim(connection.alias, operation), policy):
            return replay(operation, found, alias=connection.alias)
    raise in_progress()  # committed, but not in the snapshot of the outer transaction


def replay(operation: Operation, found: Found, *, alias: str | None = None) -> Run:
    """Answer with an outcome that was found in the database ``alias``, or in the cache.

    :raises KeyReused: when it is another request's.
    """
    if None not in (operation.fingerprint, found.fingerprint) and operation.fingerprint != found.fingerprint:
        raise reused()
    if alias is not None:
        replays.keep_on_commit(alias, operation, found)
    signals.replayed.send_robust(sender=None, operation=operation, outcome=found.outcome)
    return Run(value=None, outcome=found.outcome, replayed=True)


def announce(operation: Operation, outcome: Outcome, *, expired: bool, alias: str) -> None:
    """Tell the receivers of ``executed``, once the effect is committed."""
    send = partial(
        signals.executed.send_robust, sender=None, operation=operation, outcome=outcome, expired=expired
    )
    transaction.on_commit(send, using=alias)


def reused() -> KeyReused:
    return KeyReused(_("This key was used for another request. Send a new operation with a new key."))


def in_progress() -> OperationInProgress:
    return OperationInProgress(conf.get("RETRY_AFTER"))
