"""Celery tasks that happen once, and the outbox's way to Celery.

message ── bound to the task's arguments ──► operation = task + scope + key
   │
   ├─ known ──► the stored result; the message is acknowledged
   ├─ a rival runs it, the store is away, the outcome is unknown ──► sent again, later; acknowledged
   ▼
 run() ──raised, retried, ignored──► all rolled back, the key is free
   │
 writes and result in one commit ──► the message is acknowledged

A worker that dies, at any point, leaves its message to the broker, which delivers it again.
On Redis there is one moment where it does not: Celery takes a message off the queue and notes it as
unacknowledged in two steps, and what a worker killed between them had is gone. RabbitMQ has no such moment;
after an accident on Redis ``OutboxMessage.objects.filter(ended_at__gte=…).send_again()`` does no harm.
"""

import inspect
import logging
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn
from uuid import uuid5

from celery import Celery, Task
from celery.contrib.django.task import DjangoTask
from celery.exceptions import Ignore, Reject, TaskPredicate
from celery.utils.time import maybe_make_aware
from django.db import connections

from . import calls, dialects, engine, passing, sending
from .calls import Part
from .exceptions import IdempotencyError, OutcomeUnknown, RetryLater
from .policies import DEFAULT, Policy, Unset

if TYPE_CHECKING:
    from .relaying import Envelope

logger = logging.getLogger("idempotency")

WAITS: Final = "idempotency_waits"
"""The header that counts how often a message has stepped aside."""

LONGEST_WAIT: Final = timedelta(seconds=30)
"""For a rival, or a database that comes back: begins at IDEMPOTENCY_RETRY_AFTER and doubles up to here."""

UNKNOWN_WAIT: Final = timedelta(seconds=10)
LONGEST_UNKNOWN_WAIT: Final = timedelta(minutes=5)
"""For another system that did not answer, which asking often does not help."""


class IdempotentTask(DjangoTask):  # type: ignore[misc]  # Celery has no types
    """The base of a task that happens once for each key among its arguments::

        @shared_task(base=IdempotentTask, key="message_id")
        def grant_coupon(*, message_id: str, order_no: str, **kwargs): ...

    The task's writes (on one database) and its result are committed together, before the message is
    acknowledged; whatever is raised, retries too, rolls them back. A repeat, in whatever worker, gets an
    equal result (kept as JSON: tuples are lists, at first too), and its callbacks and the rest of its chain
    follow again. A worker that is killed, or stopped by ``time_limit``, leaves the message to be delivered
    again. A message that meets a rival is sent again with a countdown; that is none of its ``max_retries``.
    """

    abstract = True
    acks_late = True
    acks_on_timeout = False
    reject_on_worker_lost = True
    dont_autoretry_for = (RetryLater, OutcomeUnknown)

    key: ClassVar[Part | None] = None
    """An argument's name, several names, or a function of all arguments. ``None``: no record of its own,
    because the service that the task calls carries the key."""

    scope: ClassVar[Part] = ()
    """Whose keys, as ``key``; by default all messages of the task share one scope."""

    fingerprint: ClassVar[Any] = None
    """Arguments that a repeat must have in common with the first, as ``key``; ``None`` compares nothing."""

    retention: ClassVar[timedelta | Unset | None] = DEFAULT
    """How long a repeat is known: longer than the broker, or an outbox that was cut off, can be late."""

    lease: ClassVar[timedelta | None] = None
    """For work that leaves the database: the task is given its ``claim`` (see ``idempotent``)."""

    using: ClassVar[str | None] = None
    """The database of both the task's writes and the record; by default ``IDEMPOTENCY_DATABASE``."""

    _parameters: ClassVar[inspect.Signature]
    _policy: ClassVar[Policy]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Check the options.

        :raises TypeError: when key, scope or fingerprint name what is no argument, when a leased task takes
            no ``claim``, or when the message would be acknowledged before the work is done.
        """
        super().__init_subclass__(**kwargs)
        for name in ("key", "scope", "fingerprint"):
            if inspect.isfunction(vars(cls).get(name)):
                setattr(cls, name, staticmethod(vars(cls)[name]))  # an option, not a method
        if cls.lease is not None and cls.key is None:
            raise TypeError(f"{cls.__name__} has a lease and no key: name the argument that makes its key.")
        if not (cls.acks_late and cls.reject_on_worker_lost):
            raise TypeError(
                f"{cls.__name__} must leave acks_late and reject_on_worker_lost on: see its base."
            )
        cls._policy = Policy(
            retention=cls.retention, wait=timedelta(0), lease=cls.lease, using=cls.using, operation=cls.name
        )
        if cls.run is not Task.run:
            cls._check_arguments()

    @classmethod
    def _check_arguments(cls) -> None:
        run = inspect.getattr_static(cls, "run").__get__(object(), cls)  # bound: without its self
        cls._parameters = inspect.signature(run)
        if cls.lease is not None:
            cls._parameters = calls.without_claim(cls._parameters)
            cls.__header__ = staticmethod(cls._parameters.bind)  # what apply_async() checks
        calls.check_names(cls.__name__, cls._parameters, cls.key, cls.scope, cls.fingerprint)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the task, unless it has a result already.

        :raises KeyMissing, KeyInvalid, KeyReused: the message's own fault.
        :raises RetryLater, OutcomeUnknown: when called directly or eagerly: repeat it yourself.
        """
        try:
            return self._run_once(args, kwargs)
        except (RetryLater, OutcomeUnknown) as error:
            for connection in connections.all(initialized_only=True):
                connection.close_if_unusable_or_obsolete()
            if self.request.called_directly or self.request.is_eager:
                raise
            self._step_aside(error)

    def retry(
        self,
        args: Any = None,
        kwargs: Any = None,
        exc: Exception | None = None,
        throw: bool = True,
        eta: datetime | None = None,
        countdown: float | None = None,
        **options: Any,
    ) -> Any:
        """Roll back and try again later, as Celery does, but never later than the broker can wait.

        On Redis that is half the ``visibility_timeout``: what waits longer is delivered once more meanwhile,
        and each copy would be retried.
        """
        if eta is None and countdown is None:
            countdown = self.default_retry_delay
        longest = sending.longest_wait(self.app)
        if _until(eta, countdown, self.app) > longest:
            eta, countdown = None, longest.total_seconds()
        return super().retry(args, kwargs, exc, throw, eta=eta, countdown=countdown, **options)

    def replace(self, sig: Any) -> Any:
        """Refuse: the replacement would be sent, and all that the task wrote rolled back.

        :raises RuntimeError: unless the task has no ``key``.
        """
        if self.key is None:
            return super().replace(sig)
        raise RuntimeError(
            f"{self.name} is idempotent and cannot replace itself: its own writes would be rolled back. "
            "Publish what is to follow to the outbox, or chain it."
        )

    def _run_once(self, args: Any, kwargs: Any) -> Any:
        if self.key is None:
            return self._run(*args, **kwargs)
        operation = self._operation(calls.arguments(self._parameters, args, kwargs))
        return calls.run(operation, partial(self._run, *args, **kwargs), policy=self._policy).value

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self.run(*args, **kwargs)
        except (TaskPredicate, RetryLater, OutcomeUnknown):  # it is said already what is to become of it
            raise
        except Exception as error:
            if self._is_rerun_for(error) or not (reason := passing.reason(error)):
                raise
            raise reason from error

    def _is_rerun_for(self, error: Exception) -> bool:
        return self.key is not None and self.lease is None and dialects.is_conflict(error)

    def _operation(self, arguments: dict[str, Any]) -> Any:
        try:
            return calls.operation(
                f"tasks.{self.name}",
                arguments,
                key=self.key,  # type: ignore[arg-type]
                scope=self.scope,
                fingerprint=self.fingerprint,
            )
        except IdempotencyError as error:
            engine.refuse(error)
            raise

    def _step_aside(self, error: RetryLater | OutcomeUnknown) -> NoReturn:
        """Send the same message again, then end this delivery: a crash between leaves two, never none."""
        waits = (self.request.headers or {}).get(WAITS, 0)
        wait = _wait(error, waits, self.app)
        again = self.signature_from_request(countdown=wait.total_seconds())  # same id, retries and queue
        again.set(headers={**(again.options.get("headers") or {}), WAITS: waits + 1})
        try:
            sending.publish(self.app, again.apply_async)
        except Exception as failure:
            raise Reject(failure, requeue=True) from failure
        logger.info("%s steps aside for %s: %s", self.name, wait, error.code)
        raise Ignore(error.code)


def _wait(error: RetryLater | OutcomeUnknown, waits: int, app: Celery) -> timedelta:
    if isinstance(error, RetryLater):
        first, longest = error.retry_after, LONGEST_WAIT
    else:
        first, longest = UNKNOWN_WAIT, LONGEST_UNKNOWN_WAIT
    wait: timedelta = min(first * 2 ** min(waits, 16), longest)
    return min(wait, sending.longest_wait(app))


def _until(eta: datetime | None, countdown: float | None, app: Celery) -> timedelta:
    if eta:
        return maybe_make_aware(eta, app.timezone) - datetime.now(UTC)  # type: ignore[no-any-return]
    return timedelta(seconds=countdown or 0)


def send(message: "Envelope") -> None:
    """Hand a message of the outbox to Celery: one task for each of its routes, with ``message_id`` added.

    A message that is sent twice has the same task ids. Returns when the broker has taken all of them (on
    AMQP: confirmed them), after a few seconds at most for each.

    :raises BrokerUnavailable: when the broker cannot be reached, refuses, or does not confirm in time. It may
        have taken some of the tasks.
    """
    kwargs = {**message.payload, "message_id": str(message.id)}
    for route, task_id in zip(message.routes, task_ids(message), strict=True):
        sending.send_task(route, kwargs, task_id=task_id)


def task_ids(message: "Envelope") -> list[str]:
    """Return the ids of the message's tasks, in the order of its routes: the same each time it is sent."""
    return [str(uuid5(message.id, route)) for route in message.routes]
