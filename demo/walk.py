"""What a scenario works with, and how it counts."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from socket import socket
from typing import Any

from django.utils.translation import gettext as _

from orders import models as orders
from stock.models import StockItem

from .client import Client, Order
from .processes import ProcessFailed, WorkerProcess
from .server import SandboxServer

SKU = "WALK-100"
"""An article of the walk's own, so that it buys nothing of what visitors find."""


@dataclass(frozen=True)
class Check:
    """One figure that was counted, and what it must be."""

    name: str
    seen: Any
    expected: Any

    @property
    def holds(self) -> bool:
        """Whether it is what it must be."""
        return self.seen == self.expected


@dataclass
class Step:
    """One row of the report: what was sent, what came back, what it did."""

    sent: str
    answered: list[Check] = field(default_factory=list)
    effects: list[Check] = field(default_factory=list)
    note: str = ""
    """Something about the answers that is no figure to be right or wrong."""


@dataclass(frozen=True)
class Walk:
    """What a scenario works with."""

    client: Client
    pauses: Path
    """Where a pausing handler announces its process."""

    sandbox: SandboxServer
    worker: WorkerProcess

    def order(self) -> Order:
        """A new order."""
        return Order.fresh(sku=SKU)

    def ordered(self) -> str:
        """A new order that is made already; its number."""
        order_id = self.client.send(self.order()).order_id
        if order_id is None:
            raise ProcessFailed(_("There is no order to pay."))
        return order_id

    @contextmanager
    def without_notices(self) -> Iterator[None]:
        """Have the provider tell nobody of its charges, so that only a retry can find them."""
        self.sandbox.send("POST", "/plan", json={"copies": [0]})
        yield
        self.sandbox.send("POST", "/plan", json={"copies": [1]})

    def charged_silently(self) -> str:
        """A new order that the provider has charged without telling anybody; its number."""
        order_id = self.ordered()
        self.sandbox.rule("silent_after", order=order_id)
        with self.without_notices():
            self.client.pay(order_id)
        return order_id

    def refund_at_the_provider(self, order_id: str) -> None:
        """Give an order's money back at the provider's own desk."""
        (charge,) = self.sandbox.charges(order_id)
        refund = {name: charge[name] for name in ("payment_no", "amount_minor", "currency")}
        self.sandbox.send("POST", f"/{charge['provider']}/refunds", json={"number": "desk-1", **refund})

    def tell(self, order_id: str, kinds: list[str], *, at_once: bool = False) -> int:
        """Have the provider send callbacks until they are acknowledged; return how many are."""
        acknowledged, until = 0, time.monotonic() + 20
        while kinds and time.monotonic() < until:
            wanted = {"order": order_id, "kinds": kinds, "at_once": at_once}
            answers = self.sandbox.send("POST", "/notices", json=wanted)
            refused = [
                kind for kind, answer in zip(kinds, answers, strict=True) if not answer["acknowledged"]
            ]
            acknowledged += len(kinds) - len(refused)
            kinds = refused
        return acknowledged

    @contextmanager
    def handler_running(self, order: Order, *, pause: timedelta) -> Iterator[tuple[socket, int]]:
        """Send an order, wait for its handler, yield connection and process; hang up at the end."""
        name = uuid.uuid4().hex
        with self.client.send_and_leave(order, pause=pause, pause_name=name) as connection:
            yield connection, int(wait_for(self.pauses / name))


def on_hand(sku: str = SKU) -> int:
    return StockItem.objects.get(sku=sku).on_hand


def status(order_id: str) -> str:
    return orders.Order.objects.get(order_no=order_id).status


def wait_for(path: Path) -> str:
    wait_until(path.exists)
    return path.read_text()


def wait_until(happened: Callable[[], Any]) -> None:
    until = time.monotonic() + 20
    while not happened():
        if time.monotonic() > until:
            raise ProcessFailed(_("The handler did not start."))
        time.sleep(0.02)
