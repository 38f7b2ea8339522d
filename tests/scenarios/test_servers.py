"""What happens between clients and servers: repeated, abandoned, frozen, side by side."""

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import monotonic

import pytest

from tests.campaigns import rounds
from tests.processes import Templates, WebServer
from tests.scenarios.clients import Answer, Client, Order
from tests.scenarios.conftest import (
    DATABASES,
    ENVIRONMENT,
    SERVED_DATABASES,
    SETTINGS,
    ShopServer,
    is_sqlite,
    served,
    vendor_of,
)
from tests.scenarios.effects import ONE_EFFECT, ONE_ORDER, Effects, effects, execute
from tests.scenarios.gates import Gate, Held
from tests.shopping import at_once

ASGI = [served(vendor, "asgi") for vendor in ("postgresql", "sqlite")]
AT_ONCE = 5.0


@contextmanager
def neighbour(shop: WebServer, log: Path, **env: str) -> Iterator[WebServer]:
    """A second server on the database of the first."""
    server = ShopServer(
        database=shop.database,
        app=shop.app,
        settings=shop.settings,
        workers=1,
        threads=4,
        env={**shop.env, **env},
        log=log,
    )
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.mark.parametrize("shop", DATABASES, indirect=True)
class TestTwoServers:
    def test_make_one_order_of_a_post_that_a_proxy_repeats(
        self, shop: WebServer, alice: Client, gate: Gate, tmp_path: Path
    ) -> None:
        """HTTP-08"""
        order, before = Order(), effects(shop)
        with neighbour(shop, tmp_path / "second.log") as second, ThreadPoolExecutor() as pool:
            elsewhere = Client(url=second.url)
            first = pool.submit(alice.order, order, gate.at("in_handler"))
            held = gate.wait()
            repeat = pool.submit(elsewhere.order, order, gate.at("entered"))
            gate.wait().release()
            if not is_sqlite(shop):
                assert (repeat.result().status, repeat.result().retry_after) == (409, 1)
            held.release()
            assert first.result().status == 201
            assert repeat.result().status == (200 if is_sqlite(shop) else 409)
            assert elsewhere.order(order).order == first.result().order
        assert effects(shop) - before == ONE_ORDER


@pytest.mark.parametrize("shop", [*DATABASES, *ASGI], indirect=True)
class TestClientWhoHangsUp:
    def test_finds_the_order_made_when_it_repeats(self, shop: WebServer, alice: Client, gate: Gate) -> None:
        """HTTP-10"""
        order, before = Order(), effects(shop)
        with alice.hanging(order, gate.at("in_handler")):
            held = gate.wait()
        held.release()
        again = alice.insist(order, within=AT_ONCE)
        assert (again.status, again.data["isDuplicate"]) == (200, True)
        assert effects(shop) - before == ONE_ORDER


@pytest.mark.parametrize("shop", SERVED_DATABASES, indirect=True)
class TestFrozenWorker:
    def test_keeps_its_claim_and_keeps_nobody_waiting(
        self, shop: WebServer, alice: Client, gate: Gate
    ) -> None:
        order, before = Order(), effects(shop)
        with ThreadPoolExecutor() as pool:
            first = pool.submit(alice.order, order, gate.at("in_handler"))
            held = gate.wait()
            with frozen(held):
                began = monotonic()
                rivals = [alice.order(order) for _ in range(5)]
                assert monotonic() - began < AT_ONCE
                assert {(rival.status, rival.retry_after) for rival in rivals} == {(409, 1)}
            held.release()
        assert first.result().status == 201
        assert alice.order(order).order == first.result().order
        assert effects(shop) - before == ONE_ORDER


@contextmanager
def frozen(held: Held) -> Iterator[None]:
    os.kill(held.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(held.pid, signal.SIGCONT)


class TestFourWorkers:
    def test_that_all_hold_the_same_request_make_one_order(
        self, serve: Callable[..., WebServer], vendor: str, gate: Gate
    ) -> None:
        """STO-12: a worker with one thread takes one request at a time, so each has one."""
        shop = serve(database=vendor, workers=4, threads=1, settings=SETTINGS, env=ENVIRONMENT)
        alice, order, before = Client(url=shop.url), Order(), effects(shop)
        with ThreadPoolExecutor(4) as pool:
            answers = [pool.submit(alice.order, order, gate.at("entered")) for _ in range(4)]
            held = [gate.wait() for _ in answers]
            for request in held:
                request.release()
        statuses = sorted(answer.result().status for answer in answers)
        assert len({request.pid for request in held}) == 4
        assert statuses.count(201) == 1
        assert set(statuses) <= {200, 201, 409}
        assert effects(shop) - before == ONE_ORDER


@pytest.mark.parametrize("shop", [*SERVED_DATABASES, served("postgresql", "asgi")], indirect=True)
class TestDifferentKeys:
    def test_run_side_by_side(self, shop: WebServer, alice: Client, gate: Gate) -> None:
        """STO-07: twenty hold their claims at the same time."""
        orders, before = [Order() for _ in range(20)], effects(shop)
        with ThreadPoolExecutor(20) as pool:
            answers = [pool.submit(alice.order, order, gate.at("after_claim")) for order in orders]
            held = [gate.wait() for _ in orders]
            for request in held:
                request.release()
        assert {answer.result().status for answer in answers} == {201}
        assert effects(shop) - before == Effects(orders=20, records=20, movements=20, taken=20)


@pytest.mark.parametrize("shop", DATABASES, indirect=True)
class TestReplica:
    def test_that_lags_behind_is_not_asked_for_records(
        self, shop: WebServer, templates: Templates, tmp_path: Path
    ) -> None:
        """STO-08"""
        stale = templates.fresh(vendor=vendor_of(shop), settings="config.settings")
        before = effects(shop)
        try:
            with neighbour(shop, tmp_path / "routed.log", REPLICA_URL=stale.url) as routed:
                alice, key = Client(url=routed.url), Order().key
                first, again = alice.effect(key), alice.effect(key)
        finally:
            stale.drop()
        assert (again.status, again.body) == (201, first.body)
        assert again.headers["idempotent-replayed"] == "true"
        assert effects(shop) - before == ONE_EFFECT


@pytest.mark.campaign
@pytest.mark.sqlite
class TestSQLite:
    def test_sells_its_stock_to_eight_threads_and_no_more(self, serve: Callable[..., WebServer]) -> None:
        """STO-10: in each round four orders, twice each; half of the orders find the stock sold out."""
        times = rounds(short=3, full=50)
        shop = serve(database="sqlite", workers=2, env=ENVIRONMENT)
        alice = Client(url=shop.url)
        execute(shop, f"UPDATE stock_stockitem SET on_hand = {2 * times} WHERE sku = 'TEA-100'")
        before = effects(shop)
        statuses: list[int] = []
        for _ in range(times):
            answers = at_once(8, partial(order_one_of, alice, [Order() for _ in range(4)]))
            statuses += [answer.status for answer in answers]
        sold = 2 * times
        assert effects(shop) - before == Effects(orders=sold, records=sold, movements=sold, taken=sold)
        assert [statuses.count(status) for status in (201, 200, 409)] == [sold, sold, 2 * sold]
        assert len(statuses) == 4 * sold


def order_one_of(client: Client, orders: list[Order], index: int) -> Answer:
    return client.order(orders[index % len(orders)])
