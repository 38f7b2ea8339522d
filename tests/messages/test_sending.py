"""The outbox's way to real brokers: confirmed, bounded, with the same ids each time."""

from collections.abc import Iterator
from datetime import timedelta
from time import monotonic
from typing import Any
from uuid import uuid4

import pytest
from amqp.exceptions import ChannelError
from celery import Celery
from kombu import Queue
from kombu.exceptions import EncodeError

import config.celery
from idempotency import sending
from idempotency.celery import send
from idempotency.exceptions import BrokerUnavailable, OperationInProgress
from idempotency.relaying import Envelope
from tests.lab.deliveries import deliver, raising, state
from tests.messages.proxies import Proxy

PATIENCE = 8.0
"""Seconds in which a broker that hangs must be given up."""

brokers = pytest.mark.parametrize(
    "proxy", ["redis", pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)], indirect=True, scope="session"
)


@pytest.fixture
def app(proxy: Proxy) -> Iterator[Celery]:
    """The process's app, for a while on a broker behind the proxy and a queue of its own."""
    app = Celery("tests", broker=proxy.url, set_as_current=False)
    app.conf.task_default_queue = f"tests-{uuid4()}"
    app.set_current()
    yield app
    sending.close()
    config.celery.app.set_current()
    app.close()


def envelope(*routes: str, **payload: Any) -> Envelope:
    return Envelope(id=uuid4(), topic="orders.paid", payload=payload, key="", routes=routes)


def taken(app: Celery) -> list[tuple[str, str, dict[str, Any]]]:
    """Take what the broker has: task, task id and arguments."""
    found = []
    with app.connection_for_read() as connection:
        queue = Queue(app.conf.task_default_queue, channel=connection.channel())
        while message := queue.get(no_ack=True):
            found.append((message.headers["task"], message.headers["id"], message.payload[1]))
    return found


def delete_queue(app: Celery) -> None:
    """Delete it with all that it holds; on Redis, all that the broker holds."""
    with app.connection_for_write() as connection:
        channel = connection.channel()
        if connection.transport.driver_type == "redis":
            channel.client.flushdb()
        else:
            Queue(app.conf.task_default_queue, channel=channel).delete()


@pytest.mark.parametrize(
    "proxy", [pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)], indirect=True, scope="session"
)
def test_a_message_that_no_queue_takes_is_not_sent(app: Celery) -> None:
    app.conf.task_routes = {"lab.lost": {"exchange": "amq.direct", "routing_key": "nobody"}}
    for _ in range(2):
        with pytest.raises(ChannelError, match="NO_ROUTE"):
            send(envelope("lab.lost"))

    send(envelope("lab.two"))
    assert [task for task, *_ in taken(app)] == ["lab.two"]


@brokers
class TestSend:
    def test_makes_a_task_for_each_route(self, app: Celery) -> None:
        message = envelope("lab.one", "lab.two", order_no="A-1")
        send(message)

        one, two = taken(app)
        assert [one[0], two[0]] == ["lab.one", "lab.two"]
        assert one[2] == two[2] == {"order_no": "A-1", "message_id": str(message.id)}
        assert one[1] != two[1]

    def test_again_has_the_same_ids(self, app: Celery) -> None:
        message = envelope("lab.one", order_no="A-1")
        for _ in range(2):
            send(message)

        first, again = taken(app)
        assert first == again

    def test_survives_a_connection_that_was_cut_in_the_meantime(self, app: Celery, proxy: Proxy) -> None:
        send(envelope("lab.one"))
        proxy.cut()
        send(envelope("lab.two"))

        assert [task for task, *_ in taken(app)] == ["lab.one", "lab.two"]

    def test_tells_that_the_broker_is_away(self, app: Celery, proxy: Proxy) -> None:
        send(envelope("lab.one"))
        with proxy.closed(), pytest.raises(BrokerUnavailable):
            send(envelope("lab.two"))
        send(envelope("lab.three"))

        assert [task for task, *_ in taken(app)] == ["lab.one", "lab.three"]

    @pytest.mark.parametrize("is_connected", [True, False])
    def test_gives_up_a_broker_that_hangs(self, app: Celery, proxy: Proxy, is_connected: bool) -> None:
        if is_connected:
            send(envelope("lab.one"))
        began = monotonic()
        with proxy.frozen(), pytest.raises(BrokerUnavailable):
            send(envelope("lab.two"))
        assert monotonic() - began < PATIENCE

        send(envelope("lab.three"))
        assert [task for task, *_ in taken(app)][-1] == "lab.three"

    def test_finds_a_queue_again_that_was_deleted_in_the_meantime(self, app: Celery) -> None:
        send(envelope("lab.one"))
        delete_queue(app)
        send(envelope("lab.two"))

        assert [task for task, *_ in taken(app)] == ["lab.two"]

    @pytest.mark.django_db(transaction=True)
    def test_finds_it_again_for_a_message_that_steps_aside(self, app: Celery) -> None:
        task = raising(app, OperationInProgress(timedelta(seconds=1)))
        expires = {"expires": None}  # RabbitMQ knows no time as far as that of other tests
        deliver(task, "A", headers=expires)
        delete_queue(app)

        assert state(deliver(task, "B", headers=expires)) == "IGNORED"
        assert [task for task, *_ in taken(app)] == ["lab.raising"]

    def test_blames_the_message_for_what_has_no_form(self, app: Celery) -> None:
        with pytest.raises(EncodeError):
            send(envelope("lab.one", order=object()))

        send(envelope("lab.two"))
        assert [task for task, *_ in taken(app)] == ["lab.two"]
