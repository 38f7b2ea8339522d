"""The database goes away: before the claim, in the handler, and while it commits."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from demo.data import ARTICLES
from tests.processes import WebServer, manage, new_database
from tests.scenarios.clients import Answer, Client, Order
from tests.scenarios.conftest import ENVIRONMENT, SERVED_DATABASES, SETTINGS, ShopServer
from tests.scenarios.effects import NOTHING, ONE_ORDER, Effects, effects
from tests.scenarios.gates import Gate
from tests.scenarios.proxies import Loss, Proxy
from tests.servers.mariadb import MariaDB
from tests.servers.postgresql import PostgreSQL
from tests.servers.private import PrivateServer

UNAVAILABLE = (503, "store_unavailable", 1)
SESSIONS = {
    "postgresql": "SELECT pid FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()",
    "mysql": "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()",
}
END = {"postgresql": "SELECT pg_terminate_backend({}, 5000)", "mysql": "KILL {}"}


class DurablePostgreSQL(PostgreSQL):
    """A commit outlives the server's process."""

    def command(self) -> list[str | Path]:
        return [*super().command(), "--synchronous_commit=on"]


class DurableMariaDB(MariaDB):
    def command(self) -> list[str | Path]:
        return [*super().command(), "--innodb-flush-log-at-trx-commit=2"]


DURABLE: dict[str, type[PrivateServer]] = {"postgresql": DurablePostgreSQL, "mariadb": DurableMariaDB}


def refusal(answer: Answer) -> tuple[int, str, int]:
    return answer.status, answer.document["code"], answer.retry_after


def end_sessions(shop: WebServer) -> None:
    """Disconnect everybody; return when the database has noticed."""
    kind = shop.database_url.partition(":")[0]
    connection = shop.connect()
    with connection, connection.cursor() as cursor:
        cursor.execute(SESSIONS[kind])
        for (session,) in cursor.fetchall():
            cursor.execute(END[kind].format(session))
        while cursor.execute(SESSIONS[kind]) and cursor.fetchall():
            pass


@pytest.mark.parametrize("shop", SERVED_DATABASES, indirect=True)
class TestLostConnection:
    @pytest.mark.parametrize("point", ["before_claim", "in_handler", "before_commit"])
    def test_is_told_and_leaves_the_key_free(
        self, shop: WebServer, alice: Client, gate: Gate, point: str
    ) -> None:
        order, before = Order(), effects(shop)
        with ThreadPoolExecutor() as pool:
            first = pool.submit(alice.order, order, gate.at(point))
            held = gate.wait()
            end_sessions(shop)
            held.release()
        assert refusal(first.result()) == UNAVAILABLE
        assert effects(shop) - before == NOTHING
        assert alice.order(order).status == 201
        assert effects(shop) - before == ONE_ORDER

    def test_in_the_handlers_own_work_is_told_and_leaves_the_key_free(
        self, shop: WebServer, alice: Client, gate: Gate
    ) -> None:
        order, before = Order(), effects(shop)
        with ThreadPoolExecutor() as pool:
            first = pool.submit(alice.order, order, gate.at("after_claim"))
            held = gate.wait()
            end_sessions(shop)
            held.release()
        assert refusal(first.result()) == UNAVAILABLE
        assert effects(shop) - before == NOTHING
        assert alice.order(order).status == 201
        assert effects(shop) - before == ONE_ORDER

    def test_between_requests_is_not_even_noticed(self, shop: WebServer, alice: Client) -> None:
        alice.order(Order())
        end_sessions(shop)
        assert [alice.order(Order()).status for _ in range(8)] == [201] * 8


@pytest.mark.parametrize("shop", SERVED_DATABASES, indirect=True)
class TestCommitInDoubt:
    @pytest.mark.parametrize(
        ("loss", "repeat"),
        [(Loss.STATEMENT, (201, False)), (Loss.ANSWER, (200, True))],
        ids=["undone", "done"],
    )
    def test_is_told_and_the_repeat_knows(
        self, shop: WebServer, tmp_path: Path, loss: Loss, repeat: tuple[int, bool]
    ) -> None:
        order, before = Order(), effects(shop)
        with Proxy(shop.database_url).serving() as proxy, behind(proxy, shop, tmp_path) as url:
            alice = Client(url=url)
            alice.order(Order())
            proxy.break_next_commit(loss)
            assert refusal(alice.order(order)) == UNAVAILABLE
            again = alice.order(order)
        assert (again.status, again.data["isDuplicate"]) == repeat
        assert effects(shop) - before == Effects(orders=2, records=2, movements=2, taken=2)


@contextmanager
def behind(proxy: Proxy, shop: WebServer, directory: Path) -> Iterator[str]:
    """The address of a second server on the shop's database, which reaches it through the proxy."""
    server = ShopServer(
        database=shop.database,
        app=shop.app,
        settings=shop.settings,
        workers=1,
        threads=4,
        env={**shop.env, "DATABASE_URL": proxy.url},
        log=directory / "proxied.log",
    )
    server.start()
    try:
        yield server.url
    finally:
        server.stop()


@pytest.mark.parametrize("vendor", [pytest.param(name, marks=getattr(pytest.mark, name)) for name in DURABLE])
class TestStoppedDatabase:
    def test_loses_nothing_and_doubles_nothing(
        self, vendor: str, gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Three orders are under way when it dies, and a fourth comes while it is down."""
        with stoppable(vendor, tmp_path, monkeypatch) as (database, shop), ThreadPoolExecutor() as pool:
            alice, before = Client(url=shop.url), effects(shop)
            orders = [Order(sku=sku) for sku in ARTICLES]  # one row of the stock each: none waits for another
            held = []
            for order, point in zip(orders, ["in_handler", "before_commit", "after_commit"], strict=False):
                answer = pool.submit(alice.order, order, gate.at(point))
                held.append((gate.wait(), answer))
            database.stop()
            down = alice.order(orders[3])
            for request, _answer in held:
                request.release()
            answers = [answer.result() for _request, answer in held]
            database.start()
            database.wait()
            assert [refusal(answer) for answer in answers[:2]] == [UNAVAILABLE] * 2
            assert answers[2].status == 201
            assert refusal(down) == UNAVAILABLE
            retries = [alice.insist(order, within=5) for order in orders]
            assert [retry.status for retry in retries] == [201, 201, 200, 201]
            assert retries[2].order == answers[2].order
            assert effects(shop) - before == Effects(orders=4, records=4, movements=4, taken=4)


@contextmanager
def stoppable(
    vendor: str, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[PrivateServer, WebServer]]:
    """A database server of the test's own, and a shop on it."""
    private = DURABLE[vendor]()
    private.prepare()
    private.start()
    private.wait()
    monkeypatch.setenv(private.variable, private.url)
    database = new_database(vendor)
    database.create()
    for command in (["migrate", "--no-input"], ["demo_data"]):
        manage(*command, database=database, settings="config.settings")
    shop = ShopServer(
        database=database,
        app="config.wsgi",
        settings=SETTINGS,
        workers=2,
        threads=4,
        env=ENVIRONMENT,
        log=directory / "shop.log",
    )
    shop.start()
    try:
        yield private, shop
    finally:
        shop.stop()
        private.stop()
