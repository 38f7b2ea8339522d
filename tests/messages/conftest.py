import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest
import redis

from tests.messages.proxies import Proxy
from tests.processes import Templates
from tests.scenarios.gates import Gate
from tests.servers import rabbitmq
from tests.workers import Worker

SETTINGS = "tests.messages.settings"
# Workers that share a Redis database would give up on each other's messages.
databases = count(20 + 10 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 40)


def setting(broker: str, database: str) -> Any:
    """A broker and a database that messages are tried on."""
    marks = [getattr(pytest.mark, name) for name in (broker, database) if name != "redis"]
    return pytest.param((broker, database), id=f"{broker}-{database}", marks=marks)


REDIS, RABBITMQ = setting("redis", "postgresql"), setting("rabbitmq", "postgresql")
MARIADB = setting("redis", "mariadb")


def fresh_redis() -> str:
    url = os.environ["REDIS_URL"].rpartition("/")[0] + f"/{next(databases)}"
    with redis.Redis.from_url(url) as client:
        client.flushdb()
    return url


@dataclass(kw_only=True)
class ProxiedWorker(Worker):
    """A worker whose way to the broker can be broken."""

    proxy: Proxy


@pytest.fixture(scope="session")
def rabbitmq_url() -> Iterator[str]:
    with rabbitmq.on_demand() as url:
        yield url


@pytest.fixture(scope="session")
def proxy(request: pytest.FixtureRequest) -> Iterator[Proxy]:
    """The way to the broker that is named: redis or rabbitmq."""
    url = fresh_redis() if request.param == "redis" else request.getfixturevalue("rabbitmq_url")
    with Proxy(url).serving() as proxy:
        yield proxy


@pytest.fixture(scope="session")
def worker(
    request: pytest.FixtureRequest, templates: Templates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProxiedWorker]:
    """A real worker of three processes on one of the settings, shared by all tests that ask for the like."""
    broker, vendor = request.param
    url = fresh_redis() if broker == "redis" else request.getfixturevalue("rabbitmq_url")
    with ExitStack() as at_end:
        proxy = at_end.enter_context(Proxy(url).serving())
        database = templates.fresh(vendor=vendor, settings="tests.settings")
        at_end.callback(database.drop)
        log = tmp_path_factory.mktemp("worker") / "log"
        worker = ProxiedWorker(
            proxy=proxy, database=database, broker=proxy.url, door=url, settings=SETTINGS, log=log
        )
        worker.start()
        at_end.callback(worker.kill)
        yield worker


@pytest.fixture
def gate() -> Iterator[Gate]:
    with Gate() as gate:
        yield gate
