"""Run an operation once: claim, handler and outcome in one transaction.

    look ──found──► replay
      │
    claim ──a rival holds it──► OperationInProgress
      │
    handler ──raised, or not worth keeping──► all rolled back, the key is free
      │
    outcome ──commit──► executed

Every adapter builds an :class:`~idempotency.values.Operation` and calls :func:`run`.
"""

import random
import time
from collections.abc import Callable
from contextvars import ContextVar
from datetime import timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db import DatabaseError, InterfaceError, OperationalError, connections, router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.translation import gettext_lazy as _

from . import claims, conf, signals
from .exceptions import IdempotencyError, KeyReused, OperationInProgress, StoreUnavailable
from .models import IdempotencyRecord
from .policies import Policy
from .values import Operation, Outcome, Run

Handler = Callable[[], tuple[Any, Outcome | None]]
"""Does the work; returns what the caller gets now, and the outcome to keep (``None``: roll it all back)."""

BACKOFF: Final = timedelta(milliseconds=10)
"""The longest pause before the first rerun; it doubles, and chance spreads the rivals."""

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


def _run(
    operation: Operation, handler: Handler, policy: Policy, before_rerun: Callable[[], None] | None
) -> Run:
    connection = connections[database(policy)]
    if connection.in_atomic_block:
        return _within(connection, operation, handler, policy)
    for attempt in range(1 + conf.get("RERUNS")):
        if attempt:
            time.sleep(random.random() * BACKOFF.total_seconds() * 2**attempt)  # noqa: S311
            if before_rerun:
                before_rerun()
        try:
            return _once(connection, operation, handler, policy)
        except DatabaseError as error:
            if not claims.is_conflict(error):
                raise
            conflict = error
    raise _in_progress() from conflict


def _within(connection: BaseDatabaseWrapper, operation: Operation, handler: Handler, policy: Policy) -> Run:
    """Run inside the caller's transaction, which a conflict has doomed: only its owner can run it again."""
    try:
        return _once(connection, operation, handler, policy)
    except StoreUnavailable:
        connection.set_rollback(True)  # there is nothing left to commit
        raise
    except DatabaseError as error:
        if not claims.is_conflict(error) or _is_ours(connection):
            raise
        connection.set_rollback(True)
        raise _in_progress() from error


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
            claim = claims.claim(connection, operation)
            if found := _attempt(claim, policy):
                return _replay(operation, found)
            in_handler = True
            value, outcome = _call(connection, operation, handler)
            in_handler = False
            if outcome is None:
                raise _Discard(value)
            if not claim.complete(outcome, retention=policy.retention):  # type: ignore[arg-type]
                raise _Overtaken
            _announce(connection, operation, outcome, claim)
    except _Discard as discard:
        return Run(value=discard.value, outcome=None, replayed=False)
    except _Overtaken:
        return _after_rival(connection, operation, policy)
    except (OperationalError, InterfaceError) as error:
        if in_handler or claims.is_conflict(error):
            raise
        raise StoreUnavailable(conf.get("RETRY_AFTER")) from error
    return Run(value=value, outcome=outcome, replayed=False)


def _attempt(claim: claims.Claim, policy: Policy) -> claims.Found | None:
    if (claim.connection.alias, claim.operation.id) in _running.get():
        raise _in_progress()  # a handler that calls its own operation; its locks would let it in
    try:
        return claim.attempt(wait=policy.wait)  # type: ignore[arg-type]
    except claims.Busy as busy:
        raise _in_progress() from busy


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
        if found := _attempt(claims.claim(connection, operation), policy):
            return _replay(operation, found)
    raise _in_progress()  # committed, but not in the snapshot of the outer transaction


def _replay(operation: Operation, found: claims.Found) -> Run:
    if None not in (operation.fingerprint, found.fingerprint) and operation.fingerprint != found.fingerprint:
        raise KeyReused(_("This key was used for another request. Send a new operation with a new key."))
    signals.replayed.send_robust(sender=None, operation=operation, outcome=found.outcome)
    return Run(value=None, outcome=found.outcome, replayed=True)


def _announce(
    connection: BaseDatabaseWrapper, operation: Operation, outcome: Outcome, claim: claims.Claim
) -> None:
    send = partial(
        signals.executed.send_robust, sender=None, operation=operation, outcome=outcome, expired=claim.expired
    )
    transaction.on_commit(send, using=connection.alias)


def _in_progress() -> OperationInProgress:
    return OperationInProgress(conf.get("RETRY_AFTER"))
