"""Messages of any broker, handled once: begin, claim the number, handle, keep, commit; then acknowledge."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import connections, transaction

from . import engine, keys
from .exceptions import KeyInvalid, KeyMissing
from .policies import Policy
from .values import Operation, Outcome


def consume_once(
    consumer: str,
    message_id: str | bytes,
    handler: Callable[[], Any],
    *,
    using: str | None = None,
    retention: timedelta | None = None,
) -> bool:
    """Call ``handler`` unless this consumer has handled the message already; acknowledge after it returns.

    The handler's writes and the message's number are committed together before this returns. ``consumer`` is
    a stable name (stored data): each consumer handles a message once. ``message_id`` may be bytes: those of
    a text, in UTF-8, are the same number as the text. Numbers are kept for ever unless ``retention`` says how
    long; make it longer than the broker can be late. With RabbitMQ and pika::

        def on_message(channel, method, properties, body):
            try:
                consume_once("coupons", properties.message_id, partial(grant, json.loads(body)))
            except RetryLater as error:
                channel.connection.call_later(
                    error.retry_after.total_seconds(),
                    partial(channel.basic_nack, method.delivery_tag, requeue=True),
                )
            else:
                channel.basic_ack(method.delivery_tag)

    With a Redis stream call ``xack`` after it, and leave what it raised pending for ``xautoclaim``.

    :returns: ``True`` when it was handled now, ``False`` when it had been: nothing was done.
    :raises OperationInProgress: when another worker is handling it. Do not acknowledge.
    :raises StoreUnavailable: when the database is away, or broke during the commit. Do not acknowledge.
    :raises KeyMissing, KeyInvalid: when ``message_id`` is none; it never will be one.
    :raises ImproperlyConfigured: inside a transaction, which would be committed after the acknowledgement.
    :raises Exception: whatever the handler raises, after everything is rolled back.
    """
    policy = Policy(retention=retention, wait=timedelta(0), using=using)
    _prepare(engine.database(policy))
    operation = Operation(name=f"messages.{consumer}", scope="", key=_number(message_id))
    return not engine.run(operation, partial(_handle, handler), policy=policy).replayed


def _handle(handler: Callable[[], Any]) -> tuple[None, Outcome]:
    handler()
    return None, Outcome.of(None)


def _number(message_id: str | bytes) -> str:
    if message_id in (None, "", b""):
        raise KeyMissing("The message has no number.")
    return keys.check(_text(message_id))


def _text(message_id: Any) -> str:
    if not isinstance(message_id, bytes | bytearray | memoryview):
        return str(message_id)
    try:
        return bytes(message_id).decode()
    except UnicodeDecodeError as error:
        raise KeyInvalid("The message's number is no UTF-8.") from error


def _prepare(alias: str) -> None:
    """Have a connection that works, as a request has: a consumer's process lives long."""
    connection = connections[alias]
    connection.close_if_unusable_or_obsolete()
    if not connection.in_atomic_block:
        return
    try:
        with transaction.atomic(alias, durable=True):
            pass  # a test case's own transaction does no harm
    except RuntimeError as error:
        raise ImproperlyConfigured(
            "consume_once() commits before the message is acknowledged, so it cannot run inside a "
            "transaction: call it outside atomic()."
        ) from error
