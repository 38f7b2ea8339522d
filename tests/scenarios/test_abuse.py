"""Clients who mean no good: floods, huge bodies, guesses at the keys of others."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psutil
import pytest

from tests.processes import WebServer
from tests.scenarios.clients import Answer, Client, Order
from tests.scenarios.conftest import DATABASES, ENVIRONMENT, SERVED_DATABASES
from tests.scenarios.effects import NOTHING, ONE_ORDER, Effects, effects
from tests.scenarios.gates import Gate

MB = 1024 * 1024


@pytest.mark.postgresql
class TestFlood:
    """SEC-02"""

    LIMIT = 40
    PADDING = " " * (MB // 2)

    def test_of_keys_is_bounded_by_the_throttle_and_stores_no_bodies(
        self, serve: Callable[..., WebServer]
    ) -> None:
        shop = serve(workers=1, threads=4, env={"THROTTLE_RATE": f"{self.LIMIT}/day"})
        mallory, before = Client(url=shop.url, token="demo-bob"), effects(shop)
        flood = [Order() for _ in range(5 * self.LIMIT)]
        statuses = Counter(self.send(mallory, order).status for order in flood[: self.LIMIT])
        memory = resident(shop)
        statuses += Counter(self.send(mallory, order).status for order in flood[self.LIMIT :])
        assert statuses == {201: self.LIMIT, 429: 4 * self.LIMIT}
        assert effects(shop) - before == Effects(**dict.fromkeys(vars(NOTHING), self.LIMIT))
        assert shop.scalar("SELECT max(pg_column_size(record)) FROM idempotency_record record") < 2048
        assert resident(shop) - memory < 10 * MB

    def send(self, client: Client, order: Order) -> Answer:
        return client.post("/api/orders", key=order.key, body=order.body + self.PADDING.encode())

    def test_in_one_body_takes_no_memory_of_its_size(self, serve: Callable[..., WebServer]) -> None:
        shop = serve(workers=1, threads=4, env=ENVIRONMENT)
        mallory, order = Client(url=shop.url, token="demo-bob"), Order()
        for _ in range(3):
            self.send(mallory, Order())
        before, memory = effects(shop), peak(shop)
        answer = mallory.post("/api/orders", key=order.key, body=order.body + b" " * (100 * MB))
        assert answer.status in {400, 413}
        assert effects(shop) - before == NOTHING
        assert peak(shop) - memory < 50 * MB


def resident(shop: WebServer) -> int:
    (worker,) = shop.pids()
    return psutil.Process(worker).memory_info().rss


def peak(shop: WebServer) -> int:
    """The most that the worker has ever had, as Linux tells it."""
    (worker,) = shop.pids()
    with open(f"/proc/{worker}/status") as status:  # noqa: PTH123
        lines = dict(line.split(":", 1) for line in status)
    return int(lines["VmHWM"].split()[0]) * 1024


class TestProbe:
    """SEC-05"""

    @pytest.mark.parametrize("shop", DATABASES, indirect=True)
    @pytest.mark.parametrize("quantity", [1, 2], ids=["with the same body", "with another body"])
    def test_of_a_foreign_key_tells_nothing(self, shop: WebServer, alice: Client, quantity: int) -> None:
        used = Order()
        alice.order(used)
        mallory, before = Client(url=shop.url, token="demo-bob"), effects(shop)
        guess = mallory.order(replace(used, quantity=quantity))
        unused = mallory.order(Order(quantity=quantity))
        assert shape(guess) == shape(unused)
        assert effects(shop) - before == Effects(orders=2, records=2, movements=2, taken=2 * quantity)

    @pytest.mark.parametrize("shop", SERVED_DATABASES, indirect=True)
    def test_of_a_foreign_key_in_progress_tells_nothing(
        self, shop: WebServer, alice: Client, gate: Gate
    ) -> None:
        order, before = Order(), effects(shop)
        with ThreadPoolExecutor() as pool:
            running = pool.submit(alice.order, order, gate.at("after_claim"))
            held = gate.wait()
            probe = Client(url=shop.url, token="demo-bob").order(order)
            assert effects(shop) - before == ONE_ORDER
            held.release()
        assert (probe.status, running.result().status) == (201, 201)
        assert probe.order != running.result().order


def shape(answer: Answer) -> object:
    """All but what differs between any two orders."""
    data = {name: value for name, value in answer.data.items() if name not in {"orderId", "createdAt"}}
    return answer.status, {**answer.document, "data": data}, sorted(answer.headers)
