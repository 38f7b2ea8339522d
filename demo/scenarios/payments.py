"""Payments: a provider that is silent, a process that dies, callbacks in any number and order."""

import os
import signal
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from django.utils.translation import gettext as _

from demo.walk import Check, Step, Walk, on_hand, status, wait_for, wait_until
from payments.models import Payment, PaymentStatus, Refund, RefundStatus

LONG_ENOUGH_TO_KILL = 5.0
"""Seconds."""


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
    walk.sandbox.rule("silent_after", order=order_id, seconds=LONG_ENOUGH_TO_KILL)
    with walk.without_notices(), ThreadPoolExecutor(1) as pool:
        lost = pool.submit(walk.client.pay, order_id, pause_name=name)
        process = int(wait_for(walk.pauses / name))
        wait_until(lambda: walk.sandbox.charges(order_id))
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
    stock, order_id = on_hand(), walk.charged_silently()
    with walk.without_notices():
        walk.refund_at_the_provider(order_id)
    answered = [Check(_("acknowledged"), walk.tell(order_id, ["refunded"]), 1)]
    waits = [Check(_("order"), status(order_id), "PENDING")]
    yield Step(_("a charge and its refund; the refund is told first"), answered, waits)
    answered = [Check(_("acknowledged"), walk.tell(order_id, ["paid", "failed"]), 2)]
    refunds = Refund.objects.filter(order__order_no=order_id, status=RefundStatus.SUCCEEDED)
    settled = [
        Check(_("order"), status(order_id), "REFUNDED"),
        Check(_("refunds"), refunds.count(), 1),
        Check(_("stock taken"), stock - on_hand(), 0),
    ]
    yield Step(_("then the charge, then an attempt before it"), answered, settled)


def _paid_once(walk: Walk, order_id: str) -> list[Check]:
    paid = Payment.objects.filter(order__order_no=order_id, status=PaymentStatus.SUCCEEDED)
    return [
        Check(_("charges at the provider"), len(walk.sandbox.charges(order_id)), 1),
        Check(_("payments"), paid.count(), 1),
        Check(_("order"), status(order_id), "PAID"),
    ]
