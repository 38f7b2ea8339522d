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

from .exceptions import BrokerUnavailable

SEND_LIMIT: Final = timedelta(seconds=3)
"""How long the broker may take to connect, to answer or to confirm: longer than a healthy one ever needs."""

AT_ONCE: Final = timedelta(seconds=0.5)
"""A connection that the broker has closed fails within this."""


def send_task(name: str, kwargs: dict[str, Any], *, task_id: str) -> None:
    """Send a task by its name; return when the broker has taken it (on AMQP: confirmed it).

    :raises BrokerUnavailable: when it cannot be reached, refuses, or does not confirm within some seconds; it
        may have taken the task.
    """
    app = current_app._get_current_object()
    pool = _producers(app, os.getpid())
    limit = SEND_LIMIT.total_seconds()
    try:
        with pool.acquire(block=True, timeout=limit) as producer:
            _publish(producer, partial(app.send_task, name, kwargs=kwargs, task_id=task_id))
    except (LimitExceeded, OperationalError) as error:
        raise BrokerUnavailable(f"{type(error).__name__}: {error}") from error


def close() -> None:
    """Close the connections that wait for the next message; it opens new ones."""
    _producers(current_app._get_current_object(), os.getpid()).connections.force_close_all()
    _producers.cache_clear()


def _publish(producer: Any, send_task: Callable[..., Any]) -> None:
    """Publish, and once more where the connection had been closed since its last use, which shows at once."""
    connection, began = producer.connection, monotonic()
    is_used = connection.connected
    try:
        _publish_once(producer, send_task)
    except _broker_errors(connection) as error:
        connection.collect()  # a confirmation that comes late must not be taken for the next message's
        if not is_used or monotonic() - began > AT_ONCE.total_seconds():
            raise OperationalError(str(error)) from error
        producer.revive(connection)
        _publish(producer, send_task)


def _publish_once(producer: Any, send_task: Callable[..., Any]) -> None:
    limit = SEND_LIMIT.total_seconds()
    producer.connection.ensure_connection(max_retries=0, timeout=limit)
    send_task(producer=producer, retry=False, add_to_parent=False, confirm_timeout=limit)


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
