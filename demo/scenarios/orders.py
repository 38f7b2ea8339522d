"""Orders: what goes wrong between a client and the shop, and what the shop makes of it."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from socket import socket

from django.utils.translation import gettext as _

from demo.client import Answer, Order
from demo.walk import Check, Step, Walk, on_hand
from idempotency.models import IdempotencyRecord
from orders import models as orders

LONG_ENOUGH_TO_HANG_UP = timedelta(seconds=1)
LONG_ENOUGH_TO_KILL = timedelta(seconds=5)


def triple_click(walk: Walk) -> Iterator[Step]:
    """One buyer, three clicks."""
    order, stock = walk.order(), on_hand()
    answers = walk.client.send_at_once([order] * 3)
    yield _step(_("one order, clicked three times"), answers, 1, _effects(order, stock))


def lost_answer(walk: Walk) -> Iterator[Step]:
    """The tunnel begins before the answer is there."""
    order, stock = walk.order(), on_hand()
    with walk.handler_running(order, pause=LONG_ENOUGH_TO_HANG_UP):
        yield Step(
            _("one order; the client hangs up while the handler runs"), note=_("nobody reads the answer")
        )
    answer = walk.client.send(order)
    yield _step(_("the same order again"), [answer], 0, _effects(order, stock))


def other_body(walk: Walk) -> Iterator[Step]:
    """A key that is used for something else."""
    order, stock = walk.order(), on_hand()
    first = walk.client.send(order)
    yield _step(_("one order"), [first], 1, _effects(order, stock))
    other = walk.client.send(replace(order, quantity=3))
    refused = [Check(_("status"), other.status, 422), Check(_("code"), other.code, "idempotency_key_reused")]
    yield Step(_("three pieces under the same key"), refused, _effects(order, stock))


def twenty_at_once(walk: Walk) -> Iterator[Step]:
    """A retry storm."""
    order, stock = walk.order(), on_hand()
    answers = walk.client.send_at_once([order] * 20)
    yield _step(_("one order, by 20 clients at once"), answers, 1, _effects(order, stock))


def killed_worker(walk: Walk) -> Iterator[Step]:
    """The machine goes down in the middle of the work."""
    order, stock = walk.order(), on_hand()
    with walk.handler_running(order, pause=LONG_ENOUGH_TO_KILL) as (connection, process):
        os.kill(process, signal.SIGKILL)
        answered = [Check(_("bytes of an answer"), _received(connection), 0)]
    undone = [Check(_("orders"), _orders(order), 0), Check(_("stock taken"), stock - on_hand(), 0)]
    yield Step(_("one order; kill -9 of the worker before it commits"), answered, undone)
    answer = walk.client.send(order)
    yield _step(_("the same order again"), [answer], 1, _effects(order, stock))


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
        Check(_("stock taken"), stock_before - on_hand(), 1),
        Check(_("records"), IdempotencyRecord.objects.filter(key=order.key).count(), 1),
    ]


def _orders(order: Order) -> int:
    return orders.Order.objects.filter(cart_id=order.cart_id).count()


def _received(connection: socket) -> int:
    """Read until the other side is gone, and count."""
    try:
        return len(connection.recv(65536))
    except ConnectionResetError:
        return 0
