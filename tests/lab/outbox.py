"""An outbox on any database, with senders that a test commands."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connections, transaction

from idempotency import outbox, relaying
from idempotency.dialects import Later
from idempotency.models import MessageState, OutboxMessage, OutboxQuerySet
from idempotency.relaying import Envelope, Relayed

from .models import Effect

KILLED_BY = "LAB_KILLED_BY"
"""The topic of the message after whose sending a process dies."""

ROUTES = {"lab.happened": ["lab.hear"], "lab.ignored": []}


class Broker:
    """What was handed over, in order; ``before`` is called first, and may raise or hang."""

    def __init__(self) -> None:
        self.heard: list[Envelope] = []
        self.before: Callable[[Envelope], Any] = lambda envelope: None

    def __call__(self, envelope: Envelope) -> None:
        self.before(envelope)
        self.heard.append(envelope)

    @property
    def numbers(self) -> list[int]:
        return [envelope.payload["number"] for envelope in self.heard]


broker = Broker()


def send(envelope: Envelope) -> None:
    """The sender in this process."""
    broker(envelope)


def send_to_table(envelope: Envelope) -> None:
    """The sender in other processes: what was handed over stays, whatever becomes of them."""
    Effect.objects.create(name=str(envelope.id))
    if os.environ.get(KILLED_BY) == envelope.topic:
        os.kill(os.getpid(), signal.SIGKILL)


class Outbox:
    """The outbox of one database."""

    def __init__(self, database: str) -> None:
        self.database = database

    def publish(self, *numbers: int, key: str = "", topic: str = "lab.happened") -> list[UUID]:
        """Publish in one transaction."""
        with self.atomic():
            return [self.write(number, key=key, topic=topic) for number in numbers]

    def write(self, number: int, *, key: str = "", topic: str = "lab.happened") -> UUID:
        """Publish into the open transaction."""
        return outbox.publish(topic, {"number": number}, key=key, using=self.database)

    def relay(self, **options: Any) -> Relayed:
        return relaying.relay(using=self.database, **options)

    def relay_all(self, **options: Any) -> int:
        """Relay until nothing is due; return how many were sent."""
        sent = 0
        while (relayed := self.relay(**options)).claimed:
            sent += relayed.sent
        return sent

    def atomic(self) -> Any:
        return transaction.atomic(self.database)

    @contextmanager
    def rolled_back(self) -> Iterator[None]:
        """A transaction, or a savepoint, that is rolled back at its end."""
        with self.atomic():
            yield
            transaction.set_rollback(True, using=self.database)

    def make_due(self) -> None:
        """Let the pauses after failures be over."""
        self.messages.pending().update(due_at=Later(timedelta(seconds=-1)), leased_until=None)

    def end_leases(self) -> None:
        self.messages.exclude(token=None).update(leased_until=Later(timedelta(seconds=-1)))

    def states(self) -> list[str]:
        return list(self.messages.order_by("pk").values_list("state", flat=True))

    def count(self, state: MessageState) -> int:
        return self.messages.filter(state=state).count()

    @property
    def messages(self) -> OutboxQuerySet:
        return OutboxMessage.objects.using(self.database)

    @property
    def connection(self) -> Any:
        return connections[self.database]


@contextmanager
def fresh_hands() -> Iterator[None]:
    """Forget that a broker did not answer an earlier test."""
    before, outbox._hands = outbox._hands, outbox._Hands()
    try:
        yield
    finally:
        outbox._hands = before
