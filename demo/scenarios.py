"""What goes wrong between a client and a shop, and what the shop makes of it.

Each scenario sends real requests, and counts in the database what they did.
"""

import os
import signal
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from socket import socket
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from idempotency.models import IdempotencyRecord
from orders import models as orders
from payments.models import Payment, PaymentStatus, Refund, RefundStatus
from stock.models import StockItem

from .client import Answer, Client, Order
from .server import SandboxServer, ServerFailed

SKU = "WALK-100"
"""An article of the walk's own, so that it buys nothing of what visitors find."""

LONG_ENOUGH_TO_HANG_UP = timedelta(seconds=1)
LONG_ENOUGH_TO_KILL = timedelta(seconds=5)


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

    def order(self) -> Order:
        """A new order."""
        return Order.fresh(sku=SKU)

    def ordered(self) -> str:
        """A new order that is made already; its number."""
        order_id = self.client.send(self.order()).order_id
        if order_id is None:
            raise ServerFailed(_("There is no order to pay."))
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
            yield connection, int(_wait_for(self.pauses / name))


def triple_click(walk: Walk) -> Iterator[Step]:
    """One buyer, three clicks."""
    order, stock = walk.order(), _on_hand()
    answers = walk.client.send_at_once([order] * 3)
    yield _step(_("one order, clicked three times"), answers, 1, _effects(order, stock))


def lost_answer(walk: Walk) -> Iterator[Step]:
    """The tunnel begins before the answer is there."""
    order, stock = walk.order(), _on_hand()
    with walk.handler_running(order, pause=LONG_ENOUGH_TO_HANG_UP):
        yield Step(
            _("one order; the client hangs up while the handler runs"), note=_("nobody reads the answer")
        )
    answer = walk.client.send(order)
    yield _step(_("the same order again"), [answer], 0, _effects(order, stock))


def other_body(walk: Walk) -> Iterator[Step]:
    """A key that is used for something else."""
    order, stock = walk.order(), _on_hand()
    first = walk.client.send(order)
    yield _step(_("one order"), [first], 1, _effects(order, stock))
    other = walk.client.send(replace(order, quantity=3))
    refused = [Check(_("status"), other.status, 422), Check(_("code"), other.code, "idempotency_key_reused")]
    yield Step(_("three pieces under the same key"), refused, _effects(order, stock))


def twenty_at_once(walk: Walk) -> Iterator[Step]:
    """A retry storm."""
    order, stock = walk.order(), _on_hand()
    answers = walk.client.send_at_once([order] * 20)
    yield _step(_("one order, by 20 clients at once"), answers, 1, _effects(order, stock))


def killed_worker(walk: Walk) -> Iterator[Step]:
    """The machine goes down in the middle of the work."""
    order, stock = walk.order(), _on_hand()
    with walk.handler_running(order, pause=LONG_ENOUGH_TO_KILL) as (connection, process):
        os.kill(process, signal.SIGKILL)
        answered = [Check(_("bytes of an answer"), _received(connection), 0)]
    undone = [Check(_("orders"), _orders(order), 0), Check(_("stock taken"), stock - _on_hand(), 0)]
    yield Step(_("one order; kill -9 of the worker before it commits"), answered, undone)
    answer = walk.client.send(order)
    yield _step(_("the same order again"), [answer], 1, _effects(order, stock))


def pay_three_times(walk: Walk) -> Iterator[Step]:
    """One buyer, three clicks on "pay"."""
    order_id = walk.ordered()
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(walk.client.insist_on_paying, [order_id] * 3))
    answered = [
        Check(_("200 paid"), sum(answer.pay_status == "paid" for answer in answers), 3),
        Check(_("200 isDuplicate"), sum(answer.is_duplicate for answer in answers), 2),
    ]
    yield Step(_("one payment, clicked three times"), answered, _paid_once(walk, order_id))


def silent_provider(walk: Walk) -> Iterator[Step]:
    """The provider takes the money and says nothing."""
    order_id = walk.ordered()
    walk.sandbox.rule("silent_after", order=order_id)
    with walk.without_notices():
        unknown = walk.client.pay(order_id)
    answered = [Check(_("status"), unknown.status, 202), Check("payStatus", unknown.pay_status, "unknown")]
    charges = [Check(_("charges at the provider"), len(walk.sandbox.charges(order_id)), 1)]
    yield Step(_("one payment; the provider charges and does not answer"), answered, charges)
    paid = walk.client.insist_on_paying(order_id, "wechat")
    answered = [Check(_("status"), paid.status, 200), Check("payStatus", paid.pay_status, "paid")]
    yield Step(_("the same payment again, by another method"), answered, _paid_once(walk, order_id))


def killed_after_charge(walk: Walk) -> Iterator[Step]:
    """The machine goes down when the money has moved and nothing is written yet."""
    order_id, name = walk.ordered(), uuid.uuid4().hex
    walk.sandbox.rule("silent_after", order=order_id, seconds=LONG_ENOUGH_TO_KILL.total_seconds())
    with walk.without_notices(), ThreadPoolExecutor(1) as pool:
        lost = pool.submit(walk.client.pay, order_id, pause_name=name)
        process = int(_wait_for(walk.pauses / name))
        _wait_until(lambda: walk.sandbox.charges(order_id))
        os.kill(process, signal.SIGKILL)
        answered = [Check(_("answers"), int(lost.result().status != 0), 0)]
    charges = [Check(_("charges at the provider"), len(walk.sandbox.charges(order_id)), 1)]
    yield Step(_("one payment; kill -9 of the worker after the charge"), answered, charges)
    paid = walk.client.insist_on_paying(order_id)
    answered = [Check(_("status"), paid.status, 200), Check("payStatus", paid.pay_status, "paid")]
    note = _("({count} × 409 first: came again)").format(count=paid.waits) if paid.waits else ""
    yield Step(_("the same payment again"), answered, _paid_once(walk, order_id), note)


def five_callbacks(walk: Walk) -> Iterator[Step]:
    """The provider tells of a charge more than once."""
    order_id = walk.charged_silently()
    acknowledged = walk.tell(order_id, ["paid"] * 5, at_once=True)
    answered = [Check(_("acknowledged"), acknowledged, 5)]
    yield Step(
        _("one charge; the provider tells of it five times at once"), answered, _paid_once(walk, order_id)
    )


def callbacks_out_of_order(walk: Walk) -> Iterator[Step]:
    """The provider tells last what came first."""
    stock, order_id = _on_hand(), walk.charged_silently()
    with walk.without_notices():
        walk.refund_at_the_provider(order_id)
    answered = [Check(_("acknowledged"), walk.tell(order_id, ["refunded"]), 1)]
    waits = [Check(_("order"), _status(order_id), "PENDING")]
    yield Step(_("a charge and its refund; the refund is told first"), answered, waits)
    answered = [Check(_("acknowledged"), walk.tell(order_id, ["paid", "failed"]), 2)]
    refunds = Refund.objects.filter(order__order_no=order_id, status=RefundStatus.SUCCEEDED)
    settled = [
        Check(_("order"), _status(order_id), "REFUNDED"),
        Check(_("refunds"), refunds.count(), 1),
        Check(_("stock taken"), stock - _on_hand(), 0),
    ]
    yield Step(_("then the charge, then an attempt before it"), answered, settled)


Scenario = Callable[[Walk], Iterator[Step]]

SCENARIOS: tuple[tuple[Any, Scenario], ...] = (
    (gettext_lazy("Triple click"), triple_click),
    (gettext_lazy("Lost answer, retried"), lost_answer),
    (gettext_lazy("Same key, another body"), other_body),
    (gettext_lazy("Twenty at once"), twenty_at_once),
    (gettext_lazy("Worker killed, retried"), killed_worker),
    (gettext_lazy("Paid three times"), pay_three_times),
    (gettext_lazy("Charged without an answer, retried"), silent_provider),
    (gettext_lazy("Worker killed after the charge, retried"), killed_after_charge),
    (gettext_lazy("Callback five times"), five_callbacks),
    (gettext_lazy("Callbacks out of order"), callbacks_out_of_order),
)


def _step(sent: str, answers: list[Answer], created: int, effects: list[Check]) -> Step:
    """Of the answers, ``created`` must be a first one and all others repeats, of one and the same order."""
    statuses = Counter(answer.status for answer in answers)
    answered = [
        Check(_("201 created"), statuses[201], created),
        Check(
            _("200 isDuplicate"),
            sum(a.status == 200 and a.is_duplicate for a in answers),
            len(answers) - created,
        ),
        Check(_("order numbers"), len({answer.order_id for answer in answers}), 1),
    ]
    told_to_wait = sum(answer.waits for answer in answers)
    note = _("({count} × 409 first: came again)").format(count=told_to_wait) if told_to_wait else ""
    return Step(sent, answered, effects, note)


def _effects(order: Order, stock_before: int) -> list[Check]:
    return [
        Check(_("orders"), _orders(order), 1),
        Check(_("stock taken"), stock_before - _on_hand(), 1),
        Check(_("records"), IdempotencyRecord.objects.filter(key=order.key).count(), 1),
    ]


def _paid_once(walk: Walk, order_id: str) -> list[Check]:
    paid = Payment.objects.filter(order__order_no=order_id, status=PaymentStatus.SUCCEEDED)
    return [
        Check(_("charges at the provider"), len(walk.sandbox.charges(order_id)), 1),
        Check(_("payments"), paid.count(), 1),
        Check(_("order"), _status(order_id), "PAID"),
    ]


def _status(order_id: str) -> str:
    return orders.Order.objects.get(order_no=order_id).status


def _orders(order: Order) -> int:
    return orders.Order.objects.filter(cart_id=order.cart_id).count()


def _on_hand() -> int:
    return StockItem.objects.get(sku=SKU).on_hand


def _wait_for(path: Path) -> str:
    _wait_until(path.exists)
    return path.read_text()


def _wait_until(happened: Callable[[], Any]) -> None:
    until = time.monotonic() + 20
    while not happened():
        if time.monotonic() > until:
            raise ServerFailed(_("The handler did not start."))
        time.sleep(0.02)


def _received(connection: socket) -> int:
    """Read until the other side is gone, and count."""
    try:
        return len(connection.recv(65536))
    except ConnectionResetError:
        return 0
