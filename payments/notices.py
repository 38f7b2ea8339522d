"""What follows from what a provider tells: pay an order, note a failed attempt, book a refund, or wait.

The order is locked first, so that the notices of one order come one after the other. None moves a state back:
that is what the conditional updates of :mod:`payments.services` are for.
"""

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Case, Q, QuerySet, When

from idempotency import conf
from idempotency.exceptions import OperationInProgress
from orders.models import Order, Status

from . import services
from .exceptions import PaymentMismatch, RefundExceedsPayment, RefundMismatch, RefundNotPossible
from .models import WAITING, Fate, Notice, NoticeKind, Payment, PaymentStatus, Refund

logger = logging.getLogger("payments")

PATIENCE: Final = timedelta(seconds=2)
"""How long a notice waits for an order that somebody holds. Providers wait 5 seconds for their answer."""

POLL: Final = timedelta(milliseconds=20)

FOR_PEOPLE: Final = frozenset({Fate.UNMATCHED, Fate.MISMATCHED, Fate.FOREIGN, Fate.REFUND_DUE})
"""Somebody should have a look."""


def take(*, notice: Notice, ours: bool, now: datetime) -> Fate:
    """Store a verified notice together with what follows from it. Call it once an event, in a transaction.

    Where the order is unknown, or the payment of a refund, the notice waits: see :func:`take_waiting`.

    :raises OperationInProgress: when somebody holds the order for too long.
    """
    order = _wait_for_order(notice) if ours else None
    notice.fate = _follow(order, notice, now) if ours else Fate.FOREIGN
    notice.received_at = now
    notice.save(force_insert=True)
    _log(notice)
    if order and notice.kind == NoticeKind.PAID:
        _take_waiting_of(order, now)
    return Fate(notice.fate)


def waiting_orders() -> list[str]:
    """Return the numbers of the orders that are there and that notices wait for."""
    numbers = {_order_no(notice) for notice in Notice.objects.waiting()}
    return sorted(Order.objects.filter(order_no__in=numbers).values_list("order_no", flat=True))


@transaction.atomic
def take_waiting(*, order_no: str, now: datetime) -> int:
    """Apply the notices that wait for this order or its payment, each once; return how many.

    Two processes that do this at once do no more than one. An order that somebody holds is left out.
    """
    order = _free(order_no).first()
    return _take_waiting_of(order, now) if order else 0


def _take_waiting_of(order: Order, now: datetime) -> int:
    """Follow what waits for a locked order: what was paid before what was given back."""
    # the lock sees the newest rows, also past the snapshot of REPEATABLE READ
    rows = Notice.objects.waiting().filter(_is_about(order)).select_for_update()
    in_turn = rows.order_by(Case(When(kind=NoticeKind.PAID, then=0), default=1), "pk")
    return sum(_take_again(order, notice, now) for notice in in_turn)


def _take_again(order: Order, notice: Notice, now: datetime) -> bool:
    before, notice.fate = notice.fate, _follow(order, notice, now)
    if notice.fate == before:
        return False
    notice.order_no, notice.settled_at = order.order_no, None if notice.fate in WAITING else now
    notice.save(update_fields=["fate", "order_no", "expected_minor", "expected_currency", "settled_at"])
    _log(notice)
    return notice.settled_at is not None


def _is_about(order: Order) -> Q:
    """Notices that name the order, or name none but one of its payments."""
    about = Q(order_no=order.order_no)
    for provider, number in order.payments.exclude(provider_payment_no=None).values_list(
        "provider", "provider_payment_no"
    ):
        about |= Q(order_no="", provider=provider, payment_no=number)
    return about


def _order_no(notice: Notice) -> str:
    """Return the order's number that a notice names, or that of the payment it names; else nothing."""
    if notice.order_no or not notice.payment_no:
        return notice.order_no
    paid = Payment.objects.filter(provider=notice.provider, provider_payment_no=notice.payment_no)
    return paid.values_list("order__order_no", flat=True).first() or ""


def _wait_for_order(notice: Notice) -> Order | None:
    """Lock and return the order that a notice is about; bounded, since the provider waits for the answer."""
    notice.order_no = _order_no(notice)
    until = time.monotonic() + PATIENCE.total_seconds()
    while Order.objects.filter(order_no=notice.order_no).exists():
        if order := _free(notice.order_no).first():
            return order
        if time.monotonic() > until:
            raise OperationInProgress(conf.get("RETRY_AFTER"))
        time.sleep(POLL.total_seconds())
    return None


def _free(order_no: str) -> QuerySet[Order]:
    return Order.objects.select_for_update(skip_locked=True).filter(order_no=order_no)


def _follow(order: Order | None, notice: Notice, now: datetime) -> Fate:
    """Do what follows from a notice of ours. The order is locked."""
    follow = _STEPS.get(NoticeKind(notice.kind))
    if follow is None:
        return Fate.NOTHING_NEW
    if order is None:
        return Fate.UNMATCHED
    fate = follow(order, notice, now)
    if fate == Fate.MISMATCHED:
        notice.expected_minor, notice.expected_currency = order.amount_minor, order.currency
    return fate


def _pay(order: Order, notice: Notice, now: datetime) -> Fate:
    try:
        settled = services.settle_payment(
            order=order,
            provider=notice.provider,
            provider_payment_no=notice.payment_no,
            amount_minor=notice.amount_minor,
            currency=notice.currency,
            paid_at=notice.happened_at or now,
        )
    except PaymentMismatch:
        return Fate.MISMATCHED
    if settled is services.Settled.KNOWN:
        moved_on = order.status in {Status.REFUNDED, Status.CANCELLED}
        return Fate.LATE if moved_on else Fate.NOTHING_NEW
    return Fate.APPLIED if settled is services.Settled.PAID else Fate.REFUND_DUE


def _fail(order: Order, notice: Notice, now: datetime) -> Fate:
    if order.status != Status.PENDING:
        return Fate.LATE
    stored = services.fail_payment(
        order=order, provider=notice.provider, provider_payment_no=notice.payment_no
    )
    return Fate.APPLIED if stored else Fate.NOTHING_NEW


def _give_back(order: Order, notice: Notice, now: datetime) -> Fate:
    if notice.currency not in {"", order.currency}:
        return Fate.MISMATCHED
    numbered = Payment.objects.filter(provider=notice.provider, provider_payment_no=notice.payment_no)
    payment = numbered.select_for_update().first()  # the lock sees what a rival has just committed
    if payment is None or payment.status in {PaymentStatus.PROCESSING, PaymentStatus.FAILED}:
        return Fate.PARKED
    if payment.order_id != order.pk:
        return Fate.MISMATCHED
    try:
        booked = _book(order, payment, notice, notice.happened_at or now)
    except RefundNotPossible:
        return Fate.PARKED
    except (RefundMismatch, RefundExceedsPayment):
        return Fate.MISMATCHED
    return Fate.APPLIED if booked else Fate.NOTHING_NEW


def _book(order: Order, payment: Payment, notice: Notice, at: datetime) -> bool:
    if payment.status != PaymentStatus.SUCCEEDED:  # it came in for nothing, and is given back as a whole
        if notice.amount_minor != payment.amount_minor:
            raise RefundMismatch(notice.refund_no)
        return services.settle_return(payment=payment, now=at)
    known = Refund.objects.filter(order=order, refund_no=notice.refund_no).first()
    if notice.is_total and known is None:
        return services.settle_refunded_total(
            order=order, total_minor=notice.amount_minor, refund_no=notice.refund_no, now=at
        )
    return services.settle_refund(
        order=order,
        refund_no=notice.refund_no,
        amount_minor=known.amount_minor if known and notice.is_total else notice.amount_minor,
        provider_refund_no=notice.provider_refund_no or None,
        now=at,
    )


_STEPS: Final[dict[NoticeKind, Callable[[Order, Notice, datetime], Fate]]] = {
    NoticeKind.PAID: _pay,
    NoticeKind.FAILED: _fail,
    NoticeKind.REFUNDED: _give_back,
}


def _log(notice: Notice) -> None:
    level = logging.WARNING if notice.fate in FOR_PEOPLE else logging.INFO
    order_no = notice.order_no or "no order"
    logger.log(level, "%s told %s of %s: %s", notice.provider, notice.kind, order_no, notice.fate)
