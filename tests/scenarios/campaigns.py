"""Many clients who repeat their orders while workers are killed: at gates, and at random moments."""

import os
import random
import signal
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread

from psutil import NoSuchProcess

from tests.processes import WebServer
from tests.scenarios.clients import LOST, Answer, Client, Order
from tests.scenarios.gates import POINTS, Gate

CLIENTS = 6
WAVE = 12


@dataclass(frozen=True, kw_only=True)
class Request:
    order: Order
    point: str | None
    """The gate that it goes through, where every second one is killed."""
    kills: bool
    """Whether the client kills some worker first, whatever the others are doing."""


@dataclass(kw_only=True)
class Campaign:
    """One run; ``heard`` and ``figures`` tell what came of it."""

    shop: WebServer
    client: Client
    gate: Gate
    chance: random.Random
    orders: list[Order] = field(default_factory=list)
    heard: dict[Order, list[Answer]] = field(default_factory=lambda: defaultdict(list))
    figures: Counter[str] = field(default_factory=Counter)

    @property
    def kills(self) -> int:
        return self.figures["kills at gates"] + self.figures["kills at random"]

    def run(self, *, keys: int, kills: int) -> None:
        """Send at least so many orders, until at least so many workers have died; then repeat each one."""
        with self.gatekeeper(), ThreadPoolExecutor(CLIENTS) as clients:
            while len(self.orders) < keys or self.kills < kills:
                list(clients.map(self.send, self.wave()))
        with ThreadPoolExecutor(CLIENTS) as clients:
            list(clients.map(self.finish, self.orders))

    def wave(self) -> list[Request]:
        """Some new orders, twice each."""
        orders = [Order() for _ in range(WAVE)]
        self.orders += orders
        requests = [self.request(order) for order in orders * 2]
        self.chance.shuffle(requests)
        return requests

    def request(self, order: Order) -> Request:
        point = self.chance.choice([*POINTS, None])
        return Request(order=order, point=point, kills=self.chance.random() < 0.1)

    def send(self, request: Request) -> None:
        if request.kills:
            self.kill_somebody()
        try:
            answer = self.client.order(request.order, self.gate.at(request.point) if request.point else None)
        except LOST:
            self.figures["lost"] += 1
            return
        self.figures[str(answer.status)] += 1
        self.heard[request.order].append(answer)

    def finish(self, order: Order) -> None:
        self.heard[order].append(self.client.insist(order, within=20))

    def kill_somebody(self) -> None:
        with suppress(IndexError, ProcessLookupError, NoSuchProcess):  # nobody is left, or already dying
            os.kill(self.chance.choice(self.shop.pids()), signal.SIGKILL)
            self.figures["kills at random"] += 1

    @contextmanager
    def gatekeeper(self) -> Iterator[None]:
        over = Event()
        thread = Thread(target=self.keep_gate, args=[over])
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def keep_gate(self, over: Event) -> None:
        while held := self.gate.next(until=over):
            if self.chance.random() < 0.5:
                held.kill()
                self.figures["kills at gates"] += 1
            else:
                held.release()
