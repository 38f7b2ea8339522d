"""Hundreds of orders, while workers are killed, the provider is silent and everybody repeats."""

import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread
from time import sleep

import psutil
import pytest

from tests.campaigns import rounds
from tests.processes import Templates
from tests.scenarios.clients import LOST
from tests.scenarios.gates import Gate
from tests.scenarios.payment_gates import PAY_POINTS
from tests.scenarios.payments import LEASE, PayingShop, paying_shop

ORDERS = {"postgresql": rounds(short=16, full=320), "mariadb": rounds(short=8, full=120)}
CLIENTS = 6
METHODS = ("alipay", "wechat", "card")
SEED = int(os.environ.get("SEED", "20250101"))

FAULTS = {
    "silent_after": 0.15,
    "error_after": 0.1,
    "silent_before": 0.05,
    "error_before": 0.05,
    "decline": 0.05,
    "slow": 0.1,
}
"""How often the provider goes wrong: a quarter of the charges happen and are not answered."""


@dataclass
class Campaign:
    """Buyers who repeat, and somebody who kills at random: at gates, and between them."""

    shop: PayingShop
    gate: Gate
    chance: random.Random
    kills: int = 0
    answers: Counter[int | str] = field(default_factory=Counter)
    over: Event = field(default_factory=Event)

    def run(self, orders: list[str]) -> None:
        """Pay each order a few times, some of them at the same time, some never to the end."""
        for mode, chance in FAULTS.items():
            seconds = 1.5 if mode == "slow" else 0.0
            self.shop.sandbox.rule(mode, chance=chance, times=0, seconds=seconds)
        self.shop.sandbox.rule("silent_before", call="find", chance=0.1, times=0)
        self.shop.sandbox.plan(copies=[0, 0, 1, 2, 3], seconds=[0.0, 0.5, LEASE])
        tries = [order for order in orders for _ in range(self.chance.choice([1, 2, 2, 3]))]
        self.chance.shuffle(tries)
        with (
            self.killing(self.kill_at_gates),
            self.killing(self.kill_at_random),
            ThreadPoolExecutor(CLIENTS) as pool,
        ):
            list(pool.map(self.pay, [(order, self.headers()) for order in tries]))
        self.shop.sandbox.clear()

    def headers(self) -> dict[str, str]:
        return dict(self.gate.at(self.chance.choice(PAY_POINTS))) if self.chance.random() < 0.3 else {}

    def pay(self, wanted: tuple[str, dict[str, str]]) -> None:
        order_no, headers = wanted
        try:
            answer = self.shop.pay(order_no, random.choice(METHODS), headers)
        except LOST:
            self.answers["lost"] += 1
            return
        self.answers[answer.status] += 1

    @contextmanager
    def killing(self, kill: Callable[[], None]) -> Iterator[None]:
        def until_over() -> None:
            while not self.over.is_set():
                kill()

        thread = Thread(target=until_over)
        thread.start()
        try:
            yield
        finally:
            self.over.set()
            thread.join()

    def kill_at_gates(self) -> None:
        with suppress(TimeoutError, OSError, ValueError, psutil.Error):
            self.gate.listener.settimeout(0.5)
            self.gate.wait().kill()
            self.kills += 1

    def kill_at_random(self) -> None:
        self.over.wait(self.chance.uniform(0.3, 1.2))
        with suppress(ProcessLookupError, psutil.Error, IndexError):
            os.kill(self.chance.choice(self.shop.server.pids()), signal.SIGKILL)
            self.kills += 1


@pytest.mark.campaign
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("vendor", [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ORDERS])
class TestCampaign:
    def test_charges_each_order_once_or_never(
        self, vendor: str, templates: Templates, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        files, chance = tmp_path_factory.mktemp("campaign"), random.Random(SEED)
        with paying_shop(vendor, templates, files) as shop, Gate() as gate:
            orders = [shop.order() for _ in range(ORDERS[vendor])]
            campaign = Campaign(shop=shop, gate=gate, chance=chance)
            campaign.run(orders)
            print(campaign.kills, "kills,", dict(campaign.answers))  # noqa: T201

            self.settle(shop)
            self.check(shop, orders, at_least=0)
            for order_no in orders:
                assert shop.insist(order_no, within=20).data["payStatus"] == "paid"
            self.settle(shop)  # a notice may have been quicker than a slow answer, on a busy machine
            self.check(shop, orders, at_least=len(orders))
            assert campaign.kills > 0
            assert campaign.answers.keys() <= {200, 202, 402, 409, 503, "lost"}

    def settle(self, shop: PayingShop) -> None:
        """Once the leases have ended, two reconcilers at once leave nothing behind."""
        sleep(LEASE + 1)
        shop.reconcile(at_once=2)
        assert shop.reconcile() == []

    def check(self, shop: PayingShop, orders: list[str], *, at_least: int) -> None:
        """PAID with one charge, or PENDING and uncharged: by the provider's own count."""
        charges, statuses, payments = shop.charges(), shop.statuses(), shop.payments()
        wrong = {
            order_no: (charges[order_no], statuses[order_no])
            for order_no in orders
            if (charges[order_no], statuses[order_no]) not in {(1, "PAID"), (0, "PENDING")}
        }
        assert wrong == {}
        assert sum(charges.values()) >= at_least
        assert {order: payments[order, "SUCCEEDED"] for order in orders} == {o: charges[o] for o in orders}
        assert {status for _, status in payments} <= {"SUCCEEDED", "FAILED"}
        assert shop.unfinished() == 0
