"""kill -9 of a worker, at each point and at random: a retry works at once, and nothing happens twice."""

import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread
from time import monotonic

import psutil
import pytest

from tests.campaigns import rounds
from tests.processes import WebServer
from tests.scenarios.clients import LOST, Answer, Client, Order
from tests.scenarios.conftest import ALL, DATABASES
from tests.scenarios.effects import NOTHING, ONE_ORDER, Effects, effects
from tests.scenarios.gates import POINTS, Gate

AT_ONCE = 2.0
"""Seconds: far below any lease, and enough for a worker to be started anew on a busy machine."""

KEYS = rounds(short=24, full=300)
KILLS = rounds(short=6, full=60)
CLIENTS = 6


class TestKilledWorker:
    @pytest.mark.parametrize("shop", ALL, indirect=True)
    @pytest.mark.parametrize("point", POINTS)
    def test_leaves_nothing_half_done_and_lets_the_retry_work_at_once(
        self, shop: WebServer, alice: Client, gate: Gate, point: str
    ) -> None:
        order, before = Order(), effects(shop)
        with ThreadPoolExecutor() as pool:
            lost = pool.submit(alice.order, order, gate.at(point))
            gate.wait().kill()
            assert isinstance(lost.exception(), LOST)
        began = monotonic()
        retry = alice.insist(order, within=AT_ONCE)
        assert monotonic() - began < AT_ONCE
        assert retry.status == (200 if point == "after_commit" else 201)
        assert effects(shop) - before == ONE_ORDER
        assert alice.order(order).order == retry.order

    @pytest.mark.parametrize("shop", DATABASES, indirect=True)
    @pytest.mark.parametrize("point", POINTS)
    def test_has_done_all_or_nothing(
        self, shop: WebServer, alice: Client, gate: Gate, point: str
    ) -> None:
        before = effects(shop)
        with ThreadPoolExecutor() as pool:
            lost = pool.submit(alice.order, Order(), gate.at(point))
            gate.wait().kill()
            lost.exception()
        assert effects(shop) - before == (ONE_ORDER if point == "after_commit" else NOTHING)


@dataclass
class Campaign:
    """Many clients who repeat, and somebody who kills at random: at gates, and between them."""

    shop: WebServer
    client: Client
    gate: Gate
    chance: random.Random
    kills: int = 0
    answers: Counter[int | str] = field(default_factory=Counter)
    over: Event = field(default_factory=Event)

    def run(self, orders: list[Order]) -> None:
        """Send each order once, some of them twice at the same time, while workers die."""
        sent = [(order, self.headers()) for order in orders]
        sent += [(order, self.headers()) for order in self.chance.sample(orders, len(orders) // 3)]
        self.chance.shuffle(sent)
        with self.killing(self.kill_at_gates), self.killing(self.kill_at_random):
            with ThreadPoolExecutor(CLIENTS) as pool:
                list(pool.map(lambda request: self.send(*request), sent))

    def headers(self) -> dict[str, str]:
        return dict(self.gate.at(self.chance.choice(POINTS))) if self.chance.random() < 0.5 else {}

    def send(self, order: Order, headers: dict[str, str]) -> Answer | None:
        try:
            answer = self.client.order(order, headers)
        except LOST:
            self.answers["lost"] += 1
            return None
        self.answers[answer.status] += 1
        return answer
