"""Messages of the outbox on their way out: claimed by a lease, sent, marked.

    claim ──nothing is due──► wait
      │ committed
    send, outside any transaction
      │    │
      │    ├─BrokerUnavailable──► later, not counted; the rest of the batch is released
      │    └─another error──► counted, later; after too many a dead letter
      │
    mark as sent, where the token is still ours

Killed between send and mark, a relay leaves messages that are sent a second time with the same id, when
their lease has ended: whoever receives them drops the second by the id.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from . import conf, deliveries, engine
from .deliveries import Attempt, Relayed
from .dialects import Clock
from .exceptions import UnknownTopic
from .models import OutboxMessage, OutboxQuerySet
from .policies import Policy

BATCH: Final = 100
"""Messages that a relay takes at a time; as many may be sent twice when it is killed."""

COUNTED: Final = 10_000
"""Up to here messages are counted: a figure for people, at any size of the table."""


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """A message as its sender gets it."""

    id: UUID
    """The same each time the message is sent."""

    topic: str
    payload: dict[str, Any]
    key: str
    """Messages of one key are handed over in order; ``""`` for none."""

    routes: tuple[str, ...]
    """What ``IDEMPOTENCY_OUTBOX_ROUTES`` has for the topic."""


Sender = Callable[[Envelope], None]
"""Returns when the message is safely handed over.

It raises :class:`~idempotency.exceptions.BrokerUnavailable` when the broker cannot be reached or did not
confirm in time; any other exception counts as the message's own fault.
"""


@dataclass(frozen=True, kw_only=True)
class Status:
    """How much is left to send; the counts go up to :data:`COUNTED`."""

    pending: int
    """Messages to be sent, those included that wait for their next attempt."""

    due: int
    """Those of them that should have been sent by now."""

    dead: int
    """Messages that were given up: somebody must requeue or drop them."""

    oldest_due: timedelta | None
    """How long the oldest of the due messages has been due; ``None`` where there is none."""


def relay(*, using: str | None = None, batch_size: int = BATCH) -> Relayed:
    """Send one batch of due messages, oldest first, and return what became of it.

    Any number of relays may run side by side. Call it outside a transaction: the claim is committed before
    the first message is sent. A broker that cannot be reached ends the batch at once.

    :raises ImproperlyConfigured: when ``IDEMPOTENCY_OUTBOX_SENDER`` cannot be imported; nothing is claimed.
    """
    alias = using or database()
    send = hand_over(sender())
    batch = deliveries.claim(using=alias, limit=batch_size)
    attempt = Attempt(batch.messages, send, patience=conf.get("OUTBOX_LEASE") / 2)
    attempt.run()
    return batch.settle(attempt)


def status(*, using: str | None = None) -> Status:
    """Count what is left to send; quick at any size of the table."""
    messages = OutboxMessage.objects.using(using or database())
    return Status(
        pending=_count(messages.pending()),
        due=_count(messages.due()),
        dead=_count(messages.dead()),
        oldest_due=_age(messages.due()),
    )


def database() -> str:
    """Return the alias of the database that holds the outbox by default: that of the records."""
    return engine.database(Policy())


def sender() -> Sender:
    """Return what ``IDEMPOTENCY_OUTBOX_SENDER`` names.

    :raises ImproperlyConfigured: when that cannot be imported.
    """
    path = conf.get("OUTBOX_SENDER")
    try:
        return import_string(path)  # type: ignore[no-any-return]
    except ImportError as error:
        raise ImproperlyConfigured(f"IDEMPOTENCY_OUTBOX_SENDER {path!r}: {error}") from error


def routes(topic: str) -> tuple[str, ...]:
    """Return where messages of this topic go.

    :raises UnknownTopic: when the settings do not know it.
    """
    known = conf.get("OUTBOX_ROUTES")
    if topic not in known:
        raise UnknownTopic(
            f"The topic {topic!r} has no entry in IDEMPOTENCY_OUTBOX_ROUTES. Name the tasks that hear of it, "
            "or an empty list."
        )
    return tuple(known[topic])


def hand_over(send: Sender) -> Callable[[OutboxMessage], None]:
    """Return what sends one message by this sender."""
    return lambda message: send(envelope(message))


def envelope(message: OutboxMessage) -> Envelope:
    """Return the message as its sender gets it.

    :raises UnknownTopic: when the settings do not know its topic any more.
    """
    return Envelope(
        id=message.message_id,
        topic=message.topic,
        payload=json.loads(message.payload),
        key=message.key,
        routes=routes(message.topic),
    )


def _count(messages: OutboxQuerySet) -> int:
    return messages.order_by().values("pk")[:COUNTED].count()


def _age(due: OutboxQuerySet) -> timedelta | None:
    oldest: Any = due.order_by("due_at").annotate(now=Clock()).values_list("now", "due_at").first()
    return oldest and max(oldest[0] - oldest[1], timedelta(0))  # type: ignore[no-any-return]
