"""Redis goes away, forgets, hangs, crawls or is full: before, in and after a request."""

import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager

import httpx
import pytest

from tests.lab.caches import Server
from tests.processes import Templates, WebServer
from tests.scenarios.clients import Answer, Client, Order
from tests.scenarios.conftest import ENVIRONMENT, SETTINGS, ShopServer
from tests.scenarios.effects import ONE_EFFECT, ONE_ORDER, effects, stock_up
from tests.scenarios.gates import Gate
from tests.scenarios.proxies import SlowProxy

pytestmark = pytest.mark.postgresql

DELAY = 0.2


class Redis(Server):
    """Reached through a proxy that can be slow."""

    def __init__(self) -> None:
        super().__init__()
        self.begin()
        self.proxy = SlowProxy(self.url)

    @contextmanager
    def flushed(self) -> Iterator[None]:
        self.empty()
        yield
        self.empty()

    @contextmanager
    def slow(self) -> Iterator[None]:
        self.proxy.delay = DELAY
        yield
        self.proxy.delay = 0

    @contextmanager
    def full(self) -> Iterator[None]:
        """Evicts all that it has, and takes nothing more."""
        self._configure(maxmemory="1", policy="allkeys-lru")
        yield
        self._configure(maxmemory="0", policy="noeviction")

    def _configure(self, *, maxmemory: str, policy: str) -> None:
        with self.client as client:
            client.config_set("maxmemory-policy", policy)
            client.config_set("maxmemory", maxmemory)


TROUBLES: dict[str, Callable[[Redis], AbstractContextManager[None]]] = {
    "stopped": Redis.away,
    "flushed": Redis.flushed,
    "hung": Redis.hanging,
    "slow": Redis.slow,
    "full": Redis.full,
}

each_trouble = pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES)


@pytest.fixture(scope="module")
def redis() -> Iterator[Redis]:
    redis = Redis()
    with redis.proxy.serving():
        yield redis
    redis.stop()


@pytest.fixture(scope="module")
def shop(redis: Redis, templates: Templates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """A shop of two processes whose repeats are answered from Redis."""
    with ExitStack() as at_end:
        fresh = templates.fresh(vendor="postgresql", settings="config.settings")
        at_end.callback(fresh.drop)
        server = ShopServer(
            database=fresh,
            app="config.wsgi",
            settings=SETTINGS,
            workers=2,
            threads=8,
            env={**ENVIRONMENT, "TEST_CACHE": "default", "REDIS_URL": redis.proxy.url},
            log=tmp_path_factory.mktemp("logs") / "shop.log",
        )
        server.start()
        at_end.callback(server.stop)
        stock_up(server)
        yield server


@pytest.fixture
def alice(shop: WebServer) -> Client:
    return Client(url=shop.url)


def same(*answers: Answer) -> bool:
    """The first answer, and then its replays: the same bytes."""
    kept = [(answer.status, answer.body, answer.headers["location"]) for answer in answers]
    replayed = ["idempotent-replayed" in answer.headers for answer in answers]
    return len(set(kept)) == 1 and replayed == [False] + [True] * (len(answers) - 1)


@each_trouble
class TestTrouble:
    def test_before_a_request(self, shop: WebServer, redis: Redis, alice: Client, trouble: Callable) -> None:
        before, key = effects(shop), Order().key
        with trouble(redis):
            answers = [alice.effect(key) for _ in range(3)]
        answers += [alice.effect(key) for _ in range(2)]

        assert same(*answers)
        assert effects(shop) - before == ONE_EFFECT

    def test_in_a_request(
        self, shop: WebServer, redis: Redis, alice: Client, gate: Gate, trouble: Callable
    ) -> None:
        before, key = effects(shop), Order().key
        with ThreadPoolExecutor() as pool:
            first = pool.submit(alice.effect, key, gate.at("in_handler"))
            held = gate.wait()
            with trouble(redis):
                held.release()
                answers = [first.result(), *[alice.effect(key) for _ in range(3)]]
        answers += [alice.effect(key) for _ in range(2)]

        assert same(*answers)
        assert effects(shop) - before == ONE_EFFECT

    def test_after_a_request(self, shop: WebServer, redis: Redis, alice: Client, trouble: Callable) -> None:
        before, key = effects(shop), Order().key
        answers = [alice.effect(key)]
        with trouble(redis):
            answers += [alice.effect(key) for _ in range(3)]
        answers += [alice.effect(key) for _ in range(2)]

        assert same(*answers)
        assert effects(shop) - before == ONE_EFFECT

    def test_with_many_at_once_makes_one_order(
        self, shop: WebServer, redis: Redis, alice: Client, trouble: Callable
    ) -> None:
        before, order = effects(shop), Order()
        with trouble(redis), ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: alice.insist(order, within=30), range(8)))

        assert sorted(answer.status for answer in answers) == [200] * 7 + [201]
        assert len({answer.order for answer in answers}) == 1
        assert effects(shop) - before == ONE_ORDER


def requests(alice: Client, key: str, *, number: int) -> float:
    """The median of so many repeats, in seconds."""
    taken = []
    for _ in range(number):
        began = time.perf_counter()
        assert alice.effect(key).status == 201
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


class TestBreaker:
    @pytest.mark.parametrize("trouble", [Redis.hanging, Redis.slow], ids=["hung", "slow"])
    def test_makes_a_redis_that_hangs_cost_little_more_than_none(
        self, redis: Redis, alice: Client, trouble: Callable
    ) -> None:
        key = Order().key
        with redis.away():
            requests(alice, key, number=20)  # until each process has noticed
            absent = requests(alice, key, number=60)
        with trouble(redis):
            requests(alice, key, number=20)
            troubled = requests(alice, key, number=60)

        # a timeout is 250 ms; below a part of it a busy machine decides, not Redis
        assert troubled <= max(1.5 * absent, 0.1)

    def test_is_seen_by_those_who_watch_over_the_shop(self, shop: WebServer, redis: Redis) -> None:
        with redis.away():
            for _ in range(20):
                httpx.get(f"{shop.url}/readyz")
            answer = httpx.get(f"{shop.url}/readyz")

        facts = {"status": "degraded", "database": "ok", "redis": "degraded", "outbox": {"due": 0, "dead": 0}}
        assert (answer.status_code, answer.json()) == (200, facts)
