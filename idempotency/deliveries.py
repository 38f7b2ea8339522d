"""Messages in the hands of one relay: claimed by a lease, sent one after the other, settled by the token."""

import logging
import random
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from threading import Lock
from time import monotonic
from typing import Any, Final
from uuid import UUID, uuid4

from django.db import connections, transaction

from . import conf, dialects, engine
from .exceptions import BrokerUnavailable
from .models import OutboxMessage, OutboxQuerySet

FIRST_PAUSE: Final = timedelta(seconds=2)
LONGEST_PAUSE: Final = timedelta(minutes=10)
"""Between two attempts at a message that fails by its own fault; the pause doubles in between."""

BROKER_PAUSE: Final = timedelta(seconds=5)
"""How long the message that met a broker's outage lets the others go first."""

ERROR_LENGTH: Final = 255

logger = logging.getLogger("idempotency")


@dataclass(frozen=True, kw_only=True)
class Relayed:
    """What became of one batch."""

    claimed: int = 0
    sent: int = 0
    failed: int = 0
    is_broker_available: bool = True


class Attempt:
    """Hands messages over, one after the other, and knows how far it has come.

    It may run in a thread that is left behind: after :meth:`stop` nothing is added to what it tells.
    """

    def __init__(
        self, messages: Iterable[OutboxMessage], send: Callable[[OutboxMessage], None], *, patience: timedelta
    ) -> None:
        self.left = deque(messages)
        self.hangs = False
        self.sent: list[OutboxMessage] = []
        self.failed: list[tuple[OutboxMessage, Exception]] = []
        self.met_outage: OutboxMessage | None = None
        self._send = send
        self._ends = monotonic() + patience.total_seconds()
        self._is_open = True
        self._is_sending = False
        self._lock = Lock()

    def run(self) -> None:
        """Send what is left, while there is time and the broker answers."""
        while message := self._next():
            self._try(message)

    def stop(self) -> None:
        """Begin no other message; whatever becomes of the present one is not told any more."""
        with self._lock:
            self._is_open = False
            self.hangs = self._is_sending

    def _next(self) -> OutboxMessage | None:
        with self._lock:
            if not (self._is_open and self.left) or monotonic() > self._ends:
                return None
            self._is_sending = True
            return self.left.popleft()

    def _try(self, message: OutboxMessage) -> None:
        try:
            self._send(message)
        except BrokerUnavailable:
            self._tell(self._note_outage, message)
        except Exception as error:  # noqa: BLE001  whatever a sender may raise is kept with the message
            self._tell(self.failed.append, (message, error))
        else:
            self._tell(self.sent.append, message)

    def _tell(self, note: Callable[[Any], None], news: Any) -> None:
        with self._lock:
            self._is_sending = False
            if self._is_open:
                note(news)

    def _note_outage(self, message: OutboxMessage) -> None:
        self.met_outage = message
        self._is_open = False


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Messages that are ours to send until the lease ends."""

    alias: str
    token: UUID = field(default_factory=uuid4)
    messages: tuple[OutboxMessage, ...] = ()

    def settle(self, attempt: Attempt) -> Relayed:
        """Write down how far the attempt came. What a successor has taken over stays as it is."""
        sent = self._write(attempt.sent, OutboxQuerySet.mark_sent)
        for message, error in attempt.failed:
            self._settle_failure(message, error)
        if attempt.met_outage:
            self._write([attempt.met_outage], partial(OutboxQuerySet.put_off, span=_jitter(BROKER_PAUSE)))
        self._write(attempt.left, OutboxQuerySet.release)
        return Relayed(
            claimed=len(self.messages),
            sent=sent,
            failed=len(attempt.failed),
            is_broker_available=attempt.met_outage is None,
        )

    def _settle_failure(self, message: OutboxMessage, error: Exception) -> None:
        attempts = message.attempts + 1
        if attempts < conf.get("OUTBOX_MAX_ATTEMPTS"):
            again_after = pause(attempts)
            verb = partial(OutboxQuerySet.mark_failed, error=describe(error), again_after=again_after)
            _log(logging.WARNING, "could not send", message, error)
        else:
            verb = partial(OutboxQuerySet.mark_dead, error=describe(error))
            _log(logging.ERROR, "gave up, a dead letter:", message, error)
        self._write([message], verb)

    def _write(self, messages: Collection[OutboxMessage], verb: Callable[[OutboxQuerySet], int]) -> int:
        """Change these messages as far as they are ours: the WHERE clause is the fence."""
        if not messages:
            return 0
        ours = OutboxMessage.objects.using(self.alias).held_by(self.token)
        return engine.rerun(partial(verb, ours.filter(pk__in=[message.pk for message in messages])))


def claim(*, using: str, limit: int, only: Collection[int] | None = None) -> Batch:
    """Take due messages for the time of the lease, of all or ``only`` of these ids. It is committed.

    Of each key only the oldest unsent message is taken, and none while a relay holds that one.
    """
    messages = OutboxMessage.objects.using(using)
    if only is not None:
        messages = messages.filter(pk__in=only)
    if not messages.due().free().exists():
        return Batch(alias=using)  # without a transaction, which on SQLite would lock out the writers
    return engine.rerun(partial(_claim, using, messages, limit))


def _claim(alias: str, messages: OutboxQuerySet, limit: int) -> Batch:
    batch = Batch(alias=alias)
    dialects.without_gap_locks(connections[alias])
    with transaction.atomic(alias, durable=True):
        first = messages.due().free().first_of_their_key().order_by("due_at", "pk")
        locked = list(first.select_for_update(skip_locked=True).values_list("pk", flat=True)[:limit])
        # InnoDB locks what is committed by now, but compares it with what was there when it began to look
        ids = list(messages.filter(pk__in=locked).first_of_their_key().values_list("pk", flat=True))
        taken = messages.filter(pk__in=ids)
        taken.lease(batch.token, conf.get("OUTBOX_LEASE"))
        return replace(batch, messages=tuple(taken.held_by(batch.token).order_by("pk")))


def pause(attempts: int) -> timedelta:
    """Return how long a message waits after so many failures of its own."""
    return _jitter(min(FIRST_PAUSE * 2 ** min(attempts - 1, 30), LONGEST_PAUSE))


def describe(error: Exception) -> str:
    """Return an error for people, without the credentials of an address."""
    text = re.sub(r"//\S*@", "//***@", f"{type(error).__name__}: {error}")
    return "".join(char if char.isprintable() else " " for char in text[:ERROR_LENGTH])


def _jitter(span: timedelta) -> timedelta:
    return span * random.uniform(0.5, 1)  # noqa: S311


def _log(level: int, what: str, message: OutboxMessage, error: Exception) -> None:
    """Without the error's text, which may quote the payload; the admin shows it."""
    kind = type(error).__name__
    extra = {"topic": message.topic, "message_id": str(message.message_id)}
    logger.log(level, "%s message %s of %s: %s", what, message.message_id, message.topic, kind, extra=extra)
