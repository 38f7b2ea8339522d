"""django-redis on Sentinel and on a Cluster, as the README configures them."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from django_redis.pool import ConnectionFactory
from redis.cluster import RedisCluster

from idempotency import breakers, caching
from idempotency.checks import caches
from tests.lab.caches import QUICK, Server
from tests.servers.private import free_port, wait_until

HOUR = timedelta(hours=1)


class ClusterConnectionFactory(ConnectionFactory):
    def connect(self, url: str) -> RedisCluster:
        return RedisCluster.from_url(url, **self.pool_cls_kwargs)


class Node(Server):
    """A cluster of one."""

    def command(self) -> list[str | Path]:
        bus = ["--cluster-enabled", "yes", "--cluster-port", str(free_port())]  # by default the port + 10,000
        return [*super().command(), "--databases", "1", *bus]

    def take_all_slots(self) -> None:
        with self.client as client:
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            wait_until(lambda: client.set("name", "value"), alive=self.is_running)


class Sentinel(Server):
    """Watches over one server, which it calls ``shop``."""

    watched: Server

    def command(self) -> list[str | Path]:
        lines = [
            f"port {self.port}",
            "bind 127.0.0.1",
            f"dir {self.home.path}",
            f"sentinel monitor shop 127.0.0.1 {self.watched.port} 1",
        ]
        file = self.home.path / "sentinel.conf"
        file.write_text("\n".join(lines))
        file.chmod(0o666)
        return [self.program.path, file, "--sentinel"]


def use(settings: Any, location: str, **options: Any) -> None:
    entry = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": location, "OPTIONS": options}
    settings.CACHES = {**settings.CACHES, "replays": entry}
    settings.IDEMPOTENCY_CACHE = "replays"


@pytest.fixture
def node() -> Iterator[Node]:
    node = Node().begin()
    node.take_all_slots()
    yield node
    with suppress(ProcessLookupError):
        node.stop()


@pytest.fixture
def sentinel(redis: Server) -> Iterator[Sentinel]:
    sentinel = Sentinel()
    sentinel.watched = redis
    sentinel.begin()
    yield sentinel
    sentinel.stop()


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    yield
    breakers.reset()


def keeps() -> bool:
    caching.put("name", b"value", HOUR)
    return (caching.get("name"), caching.add("name", b"other", HOUR)) == (b"value", False)


class TestCluster:
    def use(self, settings: Any, node: Node) -> None:
        factory = f"{__name__}.{ClusterConnectionFactory.__name__}"
        use(
            settings,
            f"redis://127.0.0.1:{node.port}",
            CONNECTION_FACTORY=factory,
            CONNECTION_POOL_KWARGS=QUICK,
        )

    def test_keeps_bytes(self, settings: Any, node: Node) -> None:
        self.use(settings, node)

        assert keeps()
        assert caches.check_kind() + caches.check_connection() == []

    def test_that_is_not_there_is_no_error(self, settings: Any, node: Node) -> None:
        self.use(settings, node)
        node.stop()

        assert [caching.get("name") for _ in range(breakers.FAILURES)] == [None] * breakers.FAILURES
        assert breakers.state() == breakers.DEGRADED
        assert caches.check_kind() + caches.check_connection() == []


class TestSentinel:
    def use(self, settings: Any, sentinel: Sentinel) -> None:
        use(
            settings,
            "redis://shop/0",
            CLIENT_CLASS="django_redis.client.SentinelClient",
            CONNECTION_FACTORY="django_redis.pool.SentinelConnectionFactory",
            SENTINELS=[("127.0.0.1", sentinel.port)],
            SENTINEL_KWARGS=QUICK,
            CONNECTION_POOL_KWARGS=QUICK,
        )

    def test_keeps_bytes(self, settings: Any, sentinel: Sentinel) -> None:
        self.use(settings, sentinel)
        wait_until(lambda: redis.Redis(port=sentinel.port).sentinel_masters(), alive=sentinel.is_running)

        assert keeps()
        assert caches.check_kind() + caches.check_connection() == []
