"""kill -9 of a worker, at each point and at random: a retry works at once, and nothing happens twice."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import pytest

from tests.campaigns import rounds
from tests.processes import WebServer
from tests.scenarios.campaigns import Campaign
from tests.scenarios.clients import LOST, Client, Order
from tests.scenarios.conftest import ALL_WSGI, DATABASES
from tests.scenarios.effects import NOTHING, ONE_ORDER, Effects, effects
from tests.scenarios.gates import POINTS, Gate

AT_ONCE = 5.0
"""Seconds: far below any lease, and enough to start a worker anew on a busy machine."""

KEYS = rounds(short=12, full=300)
KILLS = rounds(short=4, full=60)


@pytest.mark.parametrize("shop", ALL_WSGI, indirect=True)
@pytest.mark.parametrize("point", POINTS)
class TestKilledWorker:
    def test_has_done_all_or_nothing_and_the_retry_works_at_once(
        self, shop: WebServer, alice: Client, gate: Gate, point: str
    ) -> None:
        order, before = Order(), effects(shop)
        with ThreadPoolExecutor() as pool:
            lost = pool.submit(alice.order, order, gate.at(point))
            gate.wait().kill()
            assert isinstance(lost.exception(), LOST)
        is_done = point == "after_commit"
        assert effects(shop) - before == (ONE_ORDER if is_done else NOTHING)
        began = monotonic()
        retry = alice.insist(order, within=AT_ONCE)
        assert monotonic() - began < AT_ONCE
        assert (retry.status, retry.data["isDuplicate"]) == ((200, True) if is_done else (201, False))
        assert effects(shop) - before == ONE_ORDER
        assert alice.order(order).order == retry.order


@pytest.mark.campaign
@pytest.mark.parametrize("shop", DATABASES, indirect=True)
class TestManyKilledWorkers:
    def test_make_each_order_once(
        self, shop: WebServer, alice: Client, gate: Gate, figures: Callable[..., None]
    ) -> None:
        before = effects(shop)
        campaign = Campaign(shop=shop, client=alice, gate=gate, chance=random.Random(2))
        campaign.run(keys=KEYS, kills=KILLS)
        keys = len(campaign.orders)
        assert effects(shop) - before == Effects(orders=keys, records=keys, movements=keys, taken=keys)
        assert campaign.figures.keys() <= {"200", "201", "409", "lost", "kills at gates", "kills at random"}
        for answers in campaign.heard.values():
            made = [answer for answer in answers if answer.status != 409]
            assert len({answer.order for answer in made}) == 1
            assert sum(answer.status == 201 for answer in made) <= 1
        assert len({answers[-1].order for answers in campaign.heard.values()}) == keys
        figures(campaign.figures, keys=keys, kills=campaign.kills)
