"""A task on its way to the broker: confirmed, and within a bound however the broker behaves."""

import os
from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache, partial
from time import monotonic
from typing import Any, Final

from amqp.exceptions import MessageNacked
from celery import Celery, current_app
from kombu.exceptions import LimitExceeded, OperationalError
from kombu.pools import ProducerPool
from kombu.transport.virtual import Transport

from .exceptions import BrokerUnavailable

SEND_LIMIT: Final = timedelta(seconds=3)
"""How long the broker may take to connect, to answer or to confirm: longer than a healthy one ever needs."""

AT_ONCE: Final = timedelta(seconds=0.5)
"""A connection that the broker has closed fails within this."""

NO_ROUTE: Final = 312
"""AMQP's code of a message that no queue takes."""


def send_task(name: str, kwargs: dict[str, Any], *, task_id: str) -> None:
    """Send a task by its name; return when the broker has taken it (on AMQP: confirmed it).

    :raises BrokerUnavailable: when it cannot be reached, refuses, or does not confirm within some seconds; it
        may have taken the task.
    """
    app = current_app._get_current_object()
    publish(app, partial(app.send_task, name, kwargs=kwargs, task_id=task_id))


def publish(app: Celery, send: Callable[..., Any]) -> None:
    """Have ``send``, which takes Celery's options, publish one task; return when the broker has taken it.

    :raises BrokerUnavailable: as :func:`send_task`.
    :raises ChannelError: when an AMQP broker has no queue for it: somebody must mend the routing.
    """
    pool = _producers(app, os.getpid())
    try:
        with pool.acquire(block=True, timeout=SEND_LIMIT.total_seconds()) as producer:
            _publish(producer, send)
    except (LimitExceeded, OperationalError) as error:
        raise BrokerUnavailable(f"{type(error).__name__}: {error}") from error


def longest_wait(app: Celery) -> timedelta:
    """Return how long a message may wait at its worker before the broker delivers a copy of it.

    Redis and its like do so after the ``visibility_timeout``, by their clocks: half of it is safe.
    """
    transport = app.connection_for_write().get_transport_cls()
    if not issubclass(transport, Transport):
        return timedelta.max
    default = getattr(transport.Channel, "visibility_timeout", None)
    visible: float | None = app.conf.broker_transport_options.get("visibility_timeout", default)
    return timedelta(seconds=visible) / 2 if visible else timedelta.max


def close() -> None:
    """Close the connections that wait for the next message; it opens new ones."""
    _producers(current_app._get_current_object(), os.getpid()).connections.force_close_all()
    _producers.cache_clear()


def _publish(producer: Any, send: Callable[..., Any]) -> None:
    """Publish, and once more where connection or queue had gone since the last use, which shows at once."""
    connection, began = producer.connection, monotonic()
    is_used = connection.connected
    try:
        _publish_once(producer, send)
    except _broker_errors(connection) as error:
        connection.collect()  # a confirmation that comes late must not be taken for the next message's
        if not is_used and _has_no_route(error):
            raise
        if not is_used or monotonic() - began > AT_ONCE.total_seconds():
            raise OperationalError(str(error)) from error
        producer.revive(connection)
        _publish(producer, send)


def _has_no_route(error: BaseException) -> bool:
    return getattr(error, "reply_code", None) == NO_ROUTE


def _publish_once(producer: Any, send: Callable[..., Any]) -> None:
    limit = SEND_LIMIT.total_seconds()
    producer.connection.ensure_connection(max_retries=0, timeout=limit)
    send(  # mandatory: RabbitMQ confirms what no queue takes, too, but returns it first
        producer=producer, retry=False, add_to_parent=False, confirm_timeout=limit, mandatory=True
    )


def _broker_errors(connection: Any) -> tuple[type[BaseException], ...]:
    return (
        OperationalError,
        MessageNacked,
        OSError,
        *connection.connection_errors,
        *connection.channel_errors,
    )


@lru_cache(maxsize=1)
def _producers(app: Celery, process: int) -> Any:
    """Return connections of our own: the app's wait for the broker for ever, and for no confirmation."""
    limit = SEND_LIMIT.total_seconds()
    connection = app.connection_for_write(
        connect_timeout=limit,
        transport_options={
            **app.conf.broker_transport_options,
            "confirm_publish": True,
            "read_timeout": limit,
            "write_timeout": limit,
            "socket_timeout": limit,
            "socket_connect_timeout": limit,
            "max_retries": 0,
        },
    )
    size = app.conf.broker_pool_limit
    connections = connection.Pool(limit=size)
    return ProducerPool(connections, limit=size, Producer=app.amqp.Producer)  # type: ignore[no-untyped-call]
