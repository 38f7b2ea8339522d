"""A flash sale over real HTTP: a crowd, an emptied Redis, dead workers, and as many orders as units."""

import os
import random
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from time import monotonic

import pytest

from tests.campaigns import rounds
from tests.flashsales.serving import FlashShop, eventually, flash_shop
from tests.processes import Templates
from tests.scenarios.clients import LOST
from tests.scenarios.gates import Gate

pytestmark = [pytest.mark.postgresql, pytest.mark.timeout(400)]

UNITS = rounds(short=10, full=100)
BUYERS = rounds(short=120, full=2000)
REQUESTS = rounds(short=300, full=5000)
CLIENTS = 12
SEED = int(os.environ.get("SEED", "20250101"))
PATIENCE = "2"


@dataclass
class Crowd:
    """Buyers who come at once, repeat, and try again under other keys."""

    shop: FlashShop
    chance: random.Random
    heard: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    answers: Counter[tuple[int, str]] = field(default_factory=Counter)
    lock: Lock = field(default_factory=Lock)
    sent: int = 0
    lost: int = 0

    def requests(self, tokens: list[str], number: int) -> list[tuple[str, str]]:
        """Each buyer once, and some of them again: two thirds under the same key."""
        first = [(token, f"{token}-0") for token in tokens]
        again = [(token, f"{token}-{self.chance.choice([0, 0, 1])}") for token in tokens * 2]
        self.chance.shuffle(again)
        wanted = (first + again)[:number]
        self.chance.shuffle(wanted)
        return wanted

    def send(self, request: tuple[str, str]) -> None:
        token, key = request
        try:
            answer = self.shop.buy(token, key)
        except LOST:
            with self.lock:
                self.lost += 1
            answer = self.shop.insist(token, key)
        with self.lock:
            self.sent += 1
            self.answers[answer.status, answer.code] += 1
            self.heard[token].append("ticket" if answer.is_ticket else answer.code)

    def unsaid(self) -> dict[str, list[str]]:
        """Those who had a ticket and were told later that all is sold."""
        return {
            token: heard
            for token, heard in self.heard.items()
            if "ticket" in heard and "insufficient_stock" in heard[heard.index("ticket") :]
        }


@pytest.mark.campaign
@pytest.mark.timeout(1200)
class TestCampaign:
    def test_sells_each_unit_once(self, templates: Templates, tmp_path: Path) -> None:
        env = {"FLASH_ADMISSION_PATIENCE": PATIENCE, "FLASH_QUEUE_PATIENCE": PATIENCE}
        with flash_shop(templates, tmp_path, **env) as shop:
            crowd = Crowd(shop=shop, chance=random.Random(SEED))
            tokens = shop.register(BUYERS)
            shop.open(units=UNITS)
            began = monotonic()
            with (
                shop.helper("idempotency_relay", "--interval", "0.2"),
                shop.helper("reconcile_flash_sales", "--interval", "0.5"),
            ):
                self.besiege(crowd, tokens)
                took = monotonic() - began
                self.finish(crowd, tokens)
            print(f"{crowd.sent} requests in {took:.0f} s, {crowd.lost} lost, {dict(crowd.answers)}")  # noqa: T201
            self.check(crowd)

    def besiege(self, crowd: Crowd, tokens: list[str]) -> None:
        """Empty the gate when a quarter is sold; when half is sold, kill a process of each kind."""
        shop, wanted = crowd.shop, crowd.requests(tokens, REQUESTS)
        quarter, half = UNITS // 4, UNITS // 2
        doomed, _other = shop.worker(1), shop.worker(2)
        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(crowd.send, wanted[:quarter]))
            under_way = pool.map(crowd.send, wanted[quarter:half])
            shop.flush()
            list(under_way)
            under_way = pool.map(crowd.send, wanted[half:])
            shop.kill_web_worker()
            doomed.kill()
            list(under_way)

    def finish(self, crowd: Crowd, tokens: list[str]) -> None:
        """What a killed process had set aside is for sale again, and somebody buys it."""
        shop = crowd.shop

        def sold() -> int:
            for token in crowd.chance.sample(tokens, 5):
                crowd.send((token, f"{token}-late"))
            return shop.sold()

        eventually(sold, UNITS)
        eventually(lambda: shop.tickets("CREATED"), UNITS)
        eventually(shop.left, 0)

    def check(self, crowd: Crowd) -> None:
        shop = crowd.shop
        assert (shop.orders(), shop.tickets(), shop.sold(), shop.left()) == (UNITS, UNITS, UNITS, 0)
        assert shop.scalar("SELECT count(DISTINCT user_id) FROM orders_order") == UNITS
        assert shop.scalar("SELECT on_hand FROM stock_stockitem WHERE sku = 'TEA-100'") == 0
        assert crowd.sent >= REQUESTS
        assert {status for status, _ in crowd.answers} <= {200, 202, 409}
        assert crowd.answers[202, "202"] <= UNITS
        assert crowd.unsaid() == {}


class TestWithoutRedis:
    def test_sells_each_unit_once(self, templates: Templates, tmp_path: Path) -> None:
        nowhere = "redis://127.0.0.1:1/0"
        with flash_shop(templates, tmp_path, FLASH_GATE_URL=nowhere, REDIS_URL=nowhere) as shop:
            crowd = Crowd(shop=shop, chance=random.Random(SEED))
            tokens = shop.register(40)
            shop.open(units=5)
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(crowd.send, crowd.requests(tokens, 100)))
            shop.worker(1)
            with shop.helper("idempotency_relay", "--interval", "0.2"):
                eventually(lambda: shop.tickets("CREATED"), 5)

            assert (shop.orders(), shop.tickets(), shop.sold()) == (5, 5, 5)
            assert {status for status, _ in crowd.answers} <= {200, 202, 409}
            assert crowd.unsaid() == {}


class TestKilledBetweenGateAndCommit:
    def test_loses_no_unit_and_locks_nobody_out(self, templates: Templates, tmp_path: Path) -> None:
        with flash_shop(templates, tmp_path) as shop, Gate() as gate, ThreadPoolExecutor() as pool:

            def die(sku: str) -> None:
                shop.open(units=1, sku=sku)
                first = pool.submit(shop.buy, "demo-alice", "k", dict(gate.at("before_commit")), sku=sku)
                gate.wait().kill()
                with pytest.raises(LOST):
                    first.result()
                assert (shop.left(sku), shop.sold(sku), shop.tickets(sku=sku)) == (0, 0, 0)

            die("TEA-100")
            assert shop.insist("demo-bob", "k").code == "insufficient_stock"
            found = shop.manage("reconcile_flash_sales", FLASH_ADMISSION_PATIENCE="0")
            assert found.splitlines()[0] == "TEA-100: 0 of 1 sold; left at the gate 0, now 1"
            assert shop.insist("demo-bob", "k").status == 202
            assert shop.insist("demo-alice", "k").code == "insufficient_stock"
            assert (shop.left(), shop.sold(), shop.tickets()) == (0, 1, 1)

            die("CUP-010")
            assert shop.insist("demo-alice", "k", sku="CUP-010").status == 202
            assert shop.insist("demo-alice", "other", sku="CUP-010").code == "already_bought"
            assert (shop.left("CUP-010"), shop.sold("CUP-010"), shop.tickets(sku="CUP-010")) == (0, 1, 1)
