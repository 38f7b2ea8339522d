"""Run an operation that leaves this database, in steps that are kept as they are done.

take ──completed──► replay
  │  └─leased to a rival──► OperationInProgress
  ▼
handler(claim): claim.step() … claim.call() … claim.complete()
  │
  ├─ returned ──► completed: the outcome is kept
  ├─ Refused ───► forgotten: nothing happened, the key is free
  └─ OutcomeUnknown, any other error, a crash ──► the next taker resumes behind the last finished step
"""

import logging
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from hashlib import blake2b
from typing import Any, Final, TypeVar

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, transaction

from . import engine, replays, values
from .exceptions import ClaimLost, IdempotencyError, OutcomeUnknown, Refused, StoreUnavailable
from .leases import Lease, OtherFingerprint, Taken
from .policies import Policy
from .rows import Busy, Found
from .values import Operation, Outcome, Run

logger = logging.getLogger("idempotency")

Value = TypeVar("Value")
Handler = Callable[["Claim"], tuple[Any, Outcome | None]]

POLL: Final = timedelta(milliseconds=50)
"""How often a waiting repeat looks."""


class Unfinished(Exception):
    """Leaves a handler with an answer for the client, while the operation stays to be resumed."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Claim:
    """The right to run one leased operation: what its handler is given.

    Every write of the operation belongs into a :meth:`step` or into :meth:`complete`, everything that
    leaves this database into a :meth:`call`. Names of steps and calls are stored data: keep them stable.
    """

    def __init__(self, lease: Lease, taken: Taken, policy: Policy) -> None:
        self._lease = lease
        self._policy = policy
        self._steps = dict(taken.steps)
        self._untouched = taken.attempts == 1
        self._in_step = False
        self.operation = lease.operation
        self.operation_id = taken.operation_id
        self.attempts = taken.attempts
        self.expired = taken.expired
        self.outcome: Outcome | None = None

    def step(self, name: str, fn: Callable[[], Value]) -> Value:
        """Do ``fn`` and keep what it returned in one transaction; a finished step is never done again.

        A deadlock or serialization failure runs ``fn`` again.

        :returns: what ``fn`` returned, now or in an earlier attempt (plain data, as of :class:`Outcome`).
        :raises ClaimLost: when somebody else has taken over; what ``fn`` wrote is rolled back.
        """
        if name in self._steps:
            return self._steps[name]  # type: ignore[no-any-return]
        return self._kept(name, fn)  # type: ignore[no-any-return]

    def call(self, name: str, fn: Callable[[str], Value]) -> Value:
        """Do ``fn`` outside any transaction, with a key for the other side.

        The key is the same in every attempt until the operation is completed or refused, so that a provider
        that honours it does its part once. A call that returned is not made again; one that was cut off is.

        :raises ClaimLost: when somebody else has taken over, before or during the call.
        """
        if name in self._steps:
            return self._steps[name]  # type: ignore[no-any-return]
        self.heartbeat()
        self._untouched = False
        answer = fn(self.provider_key(name))
        return self._kept(name, lambda: answer)  # type: ignore[no-any-return]

    def heartbeat(self) -> None:
        """Start the lease anew, while a long call runs.

        :raises ClaimLost: when somebody else has taken over.
        """
        self._committed(lambda: None)

    def complete(self, fn: Callable[[], Any]) -> Any:
        """Do ``fn`` and keep what it returns as the operation's outcome, in one transaction; then return.

        :raises ClaimLost: when somebody else has taken over; what ``fn`` wrote is rolled back.
        """
        return self.complete_with(lambda: Outcome.of(fn())).value

    def complete_with(self, fn: Callable[[], Outcome]) -> Outcome:
        """As :meth:`complete`, for an outcome that the caller makes: an HTTP answer, say."""

        def attempt() -> Outcome:
            outcome = fn()
            retention: Any = self._policy.retention
            kept = Found.of(self.operation, outcome, retention=retention)
            self._lease.complete(outcome, retention=retention)
            replays.keep_on_commit(self._lease.alias, self.operation, kept)
            engine.announce(self.operation, outcome, expired=self.expired, alias=self._lease.alias)
            return outcome

        self.outcome = self._committed(attempt)
        return self.outcome

    def provider_key(self, name: str) -> str:
        """Return the key of one call: a digest of this effect's id and the call's name."""
        return blake2b(name.encode(), digest_size=16, key=self.operation_id.bytes).hexdigest()

    def _kept(self, name: str, fn: Callable[[], Any]) -> Any:
        def attempt() -> dict[str, Any]:
            steps = {**self._steps, name: values.plain(fn())}
            self._lease.remember(steps)
            return steps

        self._steps = self._committed(attempt)  # only once it is committed
        self._untouched = False
        return self._steps[name]

    def end(self, error: BaseException | None) -> None:
        """End an attempt without an outcome: forget it if nothing happened, else leave it to be resumed."""
        nothing_happened = isinstance(error, Refused) or (
            self._untouched and not isinstance(error, OutcomeUnknown | StoreUnavailable)  # a commit in doubt
        )
        release = self._lease.forget if nothing_happened else self._lease.end
        try:
            with transaction.atomic(self._lease.alias, durable=True):
                release()
        except (ClaimLost, DatabaseError, InterfaceError):  # the successor's, or the lease's own end, will do
            logger.warning("could not release %s", str(self.operation), exc_info=True)

    def _committed(self, fn: Callable[[], Value]) -> Value:
        """Do ``fn`` in a transaction that the fence opens: its row lock keeps takers out until the commit."""

        if self._in_step:
            raise ImproperlyConfigured(
                "A step cannot run inside another step, nor can a call, heartbeat() or complete(): each "
                "commits on its own. Do one after the other."
            )

        def attempt() -> Value:
            with transaction.atomic(self._lease.alias, durable=True):
                self._lease.renew(self._policy.lease)  # type: ignore[arg-type]
                return self._within_step(fn)

        with engine.available():
            return engine.rerun(attempt)

    def _within_step(self, fn: Callable[[], Value]) -> Value:
        self._in_step = True
        try:
            return fn()
        finally:
            self._in_step = False


def run(operation: Operation, handler: Handler, *, policy: Policy) -> Run:
    """Run ``handler`` with a claim of its own, unless the operation has an outcome already.

    :raises KeyReused: when the key belongs to another fingerprint, finished or not; nothing ran.
    :raises OperationInProgress: when a rival's lease has not ended, after at most ``policy.wait``.
    :raises ClaimLost: when a successor took over; what this attempt had not committed is rolled back.
    :raises StoreUnavailable: when the database cannot be reached, or broke during a commit.
    :raises ImproperlyConfigured: inside a transaction: the claim must be committed before the work begins.
    :raises Exception: whatever the handler raises: see the picture above for what becomes of the claim.
    """
    policy = policy.resolve()
    try:
        return _run(operation, handler, policy)
    except IdempotencyError as error:
        engine.refuse(error, operation)
        raise


def _run(operation: Operation, handler: Handler, policy: Policy) -> Run:
    alias = engine.database(policy)
    if found := replays.get(alias, operation):
        return engine.replay(operation, found)
    lease = Lease(alias, operation)
    taken = _take(lease, policy)
    if isinstance(taken, Found):
        return engine.replay(operation, taken, alias=alias)
    claim = Claim(lease, taken, policy)
    try:
        value, outcome = handler(claim)
        if claim.outcome is None and outcome is not None:
            claim.complete_with(lambda: outcome)
    except ClaimLost:
        raise  # nothing here is ours any more
    except Unfinished as unfinished:
        claim.end(unfinished)
        return Run(value=unfinished.value, outcome=None, replayed=False)
    except Exception as error:
        claim.end(error)
        raise
    return _ended(claim, value)


def _ended(claim: Claim, value: Any) -> Run:
    if claim.outcome is None:  # an answer that is not worth keeping, a 4xx say, says no for certain
        claim.end(Refused())
    return Run(value=value, outcome=claim.outcome, replayed=False)


def _take(lease: Lease, policy: Policy) -> Found | Taken:
    deadline = time.monotonic() + policy.wait.total_seconds()  # type: ignore[union-attr]
    while True:
        try:
            with engine.available():
                return engine.rerun(partial(_take_once, lease, policy))
        except Busy as busy:
            if time.monotonic() >= deadline:
                raise engine.in_progress() from busy
            time.sleep(POLL.total_seconds())
        except OtherFingerprint as error:
            raise engine.reused() from error


def _take_once(lease: Lease, policy: Policy) -> Found | Taken:
    try:
        with transaction.atomic(lease.alias, durable=True):
            taken = lease.take(policy.lease)  # type: ignore[arg-type]
            if isinstance(taken, Taken) and taken.expired:
                replays.forget_on_commit(lease.alias, lease.operation)
            return taken
    except RuntimeError as error:
        raise ImproperlyConfigured(
            "A leased operation commits its claim before the work begins, so it cannot run inside a "
            "transaction: call it outside atomic(), and take its view out of ATOMIC_REQUESTS "
            "(transaction.non_atomic_requests)."
        ) from error
