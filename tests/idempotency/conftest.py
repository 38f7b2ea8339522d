from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from celery import Celery
from django.core.cache import caches

from idempotency import breakers
from idempotency.signals import executed, refused, replayed
from tests.lab.caches import Server, cache
from tests.lab.callers import Caller
from tests.lab.operations import Lab
from tests.lab.outbox import ROUTES, Broker, Outbox, broker, fresh_hands


@pytest.fixture
def caller() -> Caller:
    """A user of the lab."""
    return Caller.named("alice")


@pytest.fixture
def stranger() -> Caller:
    """Another user."""
    return Caller.named("bob")


@pytest.fixture
def heard() -> Iterator[list[tuple[Any, ...]]]:
    """What the signals told: name and operation, and the reason of a refusal."""
    events: list[tuple[Any, ...]] = []

    def hear_executed(*, operation: Any, outcome: Any, expired: bool, **kwargs: Any) -> None:
        events.append(("executed", operation))

    def hear_replayed(*, operation: Any, outcome: Any, **kwargs: Any) -> None:
        events.append(("replayed", operation))

    def hear_refused(*, operation: Any, reason: str, **kwargs: Any) -> None:
        events.append(("refused", operation, reason))

    receivers = {executed: hear_executed, replayed: hear_replayed, refused: hear_refused}
    for signal, receiver in receivers.items():
        signal.connect(receiver)
    yield events
    for signal, receiver in receivers.items():
        signal.disconnect(receiver)


@pytest.fixture
def lab(database: str) -> Lab:
    """The engine on each database in turn; mark its tests ``lab_db``."""
    return Lab(database)


@pytest.fixture
def mail(settings: Any) -> Iterator[Broker]:
    """A broker in this process, which only relays reach: nothing is sent on commit."""
    settings.IDEMPOTENCY_OUTBOX_ROUTES = ROUTES
    settings.IDEMPOTENCY_OUTBOX_SENDER = "tests.lab.outbox.send"
    settings.IDEMPOTENCY_OUTBOX_RELAY_ON_COMMIT = False
    broker.__init__()
    with fresh_hands():
        yield broker


@pytest.fixture
def box(database: str, mail: Broker) -> Outbox:
    """The outbox of each database in turn; mark its tests ``lab_db``."""
    return Outbox(database)


@pytest.fixture
def app() -> Iterator[Celery]:
    """An app on a broker in memory, with a queue of its own."""
    app = Celery("tests", broker="memory://", set_as_current=False, fixups=[])
    app.conf.task_default_queue = f"tests-{uuid4()}"
    yield app
    app.close()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Server]:
    """A server of our own, to be stopped and emptied."""
    server = Server().begin()
    yield server
    server.stop()


@pytest.fixture
def redis(redis_server: Server) -> Server:
    """It runs, and holds nothing."""
    redis_server.empty()
    return redis_server


@pytest.fixture
def cache_kind(request: pytest.FixtureRequest) -> str:
    """Django's backend of Redis, unless the test is parametrized with another kind."""
    return getattr(request, "param", "redis")


@pytest.fixture
def replay_cache(cache_kind: str, redis: Server, settings: Any) -> Iterator[None]:
    """The library with a cache of this kind, which is empty."""
    settings.CACHES = {**settings.CACHES, "replays": cache(cache_kind, redis.url)}
    settings.IDEMPOTENCY_CACHE = "replays"
    caches["replays"].clear()
    yield
    breakers.reset()
