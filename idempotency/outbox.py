"""Tell others of a change: a message written with it, in one commit, and sent after it.

>>> with transaction.atomic():
...     Order.objects.filter(pk=order.pk, status=PENDING).update(status=PAID, paid_at=now)
...     publish("orders.paid", {"order_no": order.order_no}, key=order.order_no)

The message is sent at least once, with the same id each time: whoever receives it drops the second by the id.
"""

import json
import logging
import math
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from threading import BoundedSemaphore, Thread
from time import monotonic
from typing import Any, Final
from uuid import UUID

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import TransactionManagementError

from . import conf, deliveries, relaying
from .deliveries import Attempt, Batch
from .dialects import Clock
from .models import OutboxMessage

PAYLOAD_LIMIT: Final = 64 * 1024
"""Bytes of a payload as JSON. Brokers and the relay carry it many times; what is larger is kept elsewhere."""

NAME_LENGTH: Final = 255

TYPED: Final = {"__type__", "__value__"}
"""The names by which kombu's JSON marks what JSON has no form for."""

AT_ONCE: Final = timedelta(seconds=1)
"""How long the attempt after the commit may hold the caller."""

HANDS: Final = 4
"""Attempts after a commit that a process makes side by side; those that hang count too."""

REST: Final = timedelta(seconds=5)
"""How long a process leaves all messages to the relays, after a broker that did not answer."""

logger = logging.getLogger("idempotency")


def publish(topic: str, payload: dict[str, Any], *, key: str = "", using: str | None = None) -> UUID:
    """Write a message into the caller's open transaction, and return its id.

    It is sent once the transaction has committed, and never if that is rolled back. Right after the commit
    one attempt is made, which holds the caller for a second at most; from then on relays
    (``manage.py idempotency_relay``) try until it is sent, or is a dead letter.

    Messages with the same ``key`` are sent one at a time, in the order of their database ids, whatever
    relays there are; a dead letter holds the later ones back. That is the order of the changes where each
    transaction locks what the key names (the order's row, say) before it publishes. Without such a lock
    two transactions have no order between them, and the message that is committed last is sent last; none
    is lost.

    ``payload`` is strict JSON, at most :data:`PAYLOAD_LIMIT` bytes of it. ``using`` is the alias of the
    database with the open transaction, by default that of the idempotency records.

    :raises TransactionManagementError: outside a transaction of that database.
    :raises UnknownTopic: when ``IDEMPOTENCY_OUTBOX_ROUTES`` has no entry for the topic.
    :raises TypeError: when the payload is not strict JSON, or the key no text.
    :raises ValueError: when the payload or the key is too long, or cannot be stored or delivered.
    """
    relaying.routes(topic)
    _check_name("topic", topic)
    _check_name("key", key)
    text = _dump(payload)
    connection = connections[using or relaying.database()]
    _check_transaction(connection)
    message = OutboxMessage(topic=topic, key=key, payload=text, due_at=Clock(), created_at=Clock())
    message.save(using=connection.alias, force_insert=True)
    if conf.get("OUTBOX_RELAY_ON_COMMIT"):
        _relay_on_commit(connection, message)
    return message.message_id


def _check_transaction(connection: BaseDatabaseWrapper) -> None:
    if not connection.in_atomic_block:
        raise TransactionManagementError(
            f"publish() needs an open transaction of the database {connection.alias!r}, that of the change "
            "which the message tells of: call it inside transaction.atomic(), or name the database by using=."
        )


def _check_name(what: str, name: str) -> None:
    if not isinstance(name, str):
        raise TypeError(f"The {what} of a message is text, not {type(name).__name__}.")
    if len(name) > NAME_LENGTH or not name.isprintable():
        raise ValueError(f"The {what} of a message has at most {NAME_LENGTH} characters, all printable.")


def _dump(payload: dict[str, Any]) -> str:
    if not isinstance(payload, dict):
        raise TypeError(f"The payload of a message is a dict, not {type(payload).__name__}.")
    if "message_id" in payload:
        raise ValueError('"message_id" is not the payload\'s to say: each message gets its own.')
    _check_json(payload, "payload")
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    if (size := len(text.encode())) > PAYLOAD_LIMIT:
        raise ValueError(
            f"The payload has {size:,} bytes, more than {PAYLOAD_LIMIT:,}. Keep the content in a row or a "
            "file of its own, and publish where it is."
        )
    return text


def _check_json(value: Any, where: str) -> None:
    match value:
        case None | bool() | int() | str():
            return
        case float() if math.isfinite(value):
            return
        case list():
            for index, item in enumerate(value):
                _check_json(item, f"{where}[{index}]")
        case dict() if value.keys() == TYPED:
            raise ValueError(
                f"{where} has the names __type__ and __value__ and no other: Celery takes that for a value "
                "of its own, and delivers another one or nothing. Rename one."
            )
        case dict() if all(isinstance(name, str) for name in value):
            for name, item in value.items():
                _check_json(item, f"{where}[{name!r}]")
        case _:
            raise TypeError(
                f"{where} is no JSON: {type(value).__name__}. A payload holds texts, whole numbers, finite "
                "floats, booleans, None, lists, and dicts with text keys; spell decimals and times as text."
            )


class _AtOnce:
    """The attempt after the commit: one for all messages of a transaction."""

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self.ids: list[int] = []

    def __call__(self) -> None:
        """Whatever goes wrong, the change is committed: the caller is told nothing."""
        try:
            self._relay()
        except Exception:
            logger.exception("could not send messages right after a commit: they are left to the relays")

    def _relay(self) -> None:
        if _hands.are_resting:
            return
        send = relaying.hand_over(relaying.sender())
        ends = monotonic() + AT_ONCE.total_seconds()
        while (left := ends - monotonic()) > 0:
            batch = deliveries.claim(using=self.alias, limit=relaying.BATCH, only=self.ids)
            if not batch.messages:  # all sent, or a relay's to send
                return
            if not _hands.send(batch, send, patience=timedelta(seconds=left)):
                return


class _Hands:
    """The few threads that a hung broker may hold, so that it holds no request.

    A message whose sending hangs keeps its lease. Should it succeed later, nobody is told, and a relay
    sends it a second time when the lease has ended.
    """

    def __init__(self) -> None:
        self._free = BoundedSemaphore(HANDS)
        self._rests_until = 0.0

    @property
    def are_resting(self) -> bool:
        return monotonic() < self._rests_until

    def send(self, batch: Batch, send: Callable[[OutboxMessage], None], *, patience: timedelta) -> bool:
        """Send a batch aside and settle it; tell whether all was sent within ``patience``."""
        attempt = Attempt(batch.messages, send, patience=patience / 2)  # the last one has the other half
        if self._free.acquire(blocking=False):
            self._send_aside(attempt, patience)
        attempt.stop()
        if attempt.met_outage or attempt.hangs:
            self._rests_until = monotonic() + REST.total_seconds()
        return batch.settle(attempt).sent == len(batch.messages)

    def _send_aside(self, attempt: Attempt, patience: timedelta) -> None:
        thread = Thread(target=partial(self._run, attempt), name="outbox", daemon=True)
        try:
            thread.start()
        except (RuntimeError, MemoryError):
            self._free.release()
            logger.warning("no thread could be started: messages are left to the relays", exc_info=True)
        else:
            thread.join(patience.total_seconds())

    def _run(self, attempt: Attempt) -> None:
        try:
            attempt.run()
        finally:
            self._free.release()
            connections.close_all()  # the sender may have asked a database, in this thread


_hands = _Hands()


def _relay_on_commit(connection: BaseDatabaseWrapper, message: OutboxMessage) -> None:
    """Register the attempt, or add the message to the one that is registered.

    An attempt that is still registered outlives this message: Django takes it away only with a savepoint
    that was open when it was registered, and of those the closed ones go with the open ones.
    """
    hooks: list[Any] = connection.run_on_commit
    at_once = next((call for _, call, _ in hooks if isinstance(call, _AtOnce)), None)
    if at_once is None:
        at_once = _AtOnce(connection.alias)
        transaction.on_commit(at_once, using=connection.alias)
    if len(at_once.ids) < relaying.BATCH:
        at_once.ids.append(message.pk)
