"""What a payment or a refund that the provider has confirmed does to the shop.

Used by pay, by the provider's notices and by the reconciler alike. Each function is one transaction, or a
part of its caller's, does database work only, and changes nothing the second time. Each locks the order
first: so rivals queue there, and never wait for each other in a circle.
"""

from datetime import datetime
from enum import StrEnum
from typing import Final

from django.db import transaction
from django.utils import timezone

from idempotency.transitions import InvalidTransition
from orders.models import Order, Status
from stock.models import StockItem

from .events import publish_paid, publish_refunded
from .exceptions import PaymentMismatch, RefundExceedsPayment, RefundMismatch, RefundNotPossible
from .models import Payment, PaymentStatus, Refund, RefundStatus

CHARGED: Final = (PaymentStatus.SUCCEEDED, PaymentStatus.REFUND_DUE, PaymentStatus.REFUNDED)


class Settled(StrEnum):
    """What became of a charge."""

    PAID = "paid"
    """This call moved the order to PAID."""

    KNOWN = "known"
    """It was settled before; nothing changed."""

    REFUND_DUE = "refund_due"
    """The order was not payable (any more, or twice): the money is to be given back."""


@transaction.atomic
def settle_payment(
    *,
    order: Order,
    provider: str,
    provider_payment_no: str,
    amount_minor: int,
    currency: str,
    paid_at: datetime,
    provider_key: str | None = None,
) -> Settled:
    """Take note of a successful charge, once for each number of the provider.

    ``provider_key`` names the attempt that asked for it, where that is known.

    :raises PaymentMismatch: when it is not the order's amount or currency, or the number is another order's.
    """
    present = Order.objects.filter(pk=order.pk).locked()
    if (amount_minor, currency) != (present.amount_minor, present.currency):
        raise PaymentMismatch(
            f"{provider} tells {amount_minor} {currency}, "
            f"and {present.order_no} costs {present.amount_minor} {present.currency}"
        )
    payment = _row_of_charge(present, provider, provider_payment_no, provider_key)
    if payment.status in CHARGED:
        return Settled.KNOWN
    settled = Settled.PAID if _pay_order(present, paid_at) else Settled.REFUND_DUE
    Payment.objects.filter(pk=payment.pk).transition(
        to=PaymentStatus.SUCCEEDED if settled is Settled.PAID else PaymentStatus.REFUND_DUE,
        provider_payment_no=provider_payment_no,
        paid_at=paid_at,
    )
    if settled is Settled.PAID:
        publish_paid(present, paid_at=paid_at)
    return settled


@transaction.atomic
def fail_payment(*, order: Order, provider: str, provider_payment_no: str) -> bool:
    """Take note of an attempt that failed at the provider's; what is known of that number already stays.

    :returns: ``True`` when this call stored it.
    """
    present = Order.objects.filter(pk=order.pk).locked()
    numbered = Payment.objects.select_for_update().filter(
        provider=provider, provider_payment_no=provider_payment_no
    )
    if numbered.exists():
        return False
    _new_payment(present, provider, provider_payment_no=provider_payment_no, status=PaymentStatus.FAILED)
    return True


@transaction.atomic
def settle_refund(
    *, order: Order, refund_no: str, amount_minor: int, provider_refund_no: str | None, now: datetime
) -> bool:
    """Take note of a refund that the provider has made: one that we asked for, or one made at its own desk.

    :returns: ``True`` when this call booked it, ``False`` when it was booked before.
    :raises RefundMismatch: when the number is known with another amount.
    :raises RefundNotPossible: when the order is not paid; a notice can be parked until it is.
    :raises RefundExceedsPayment: when it is more than what is left.
    """
    present = Order.objects.filter(pk=order.pk).locked()
    refund = begin_refund(order=present, refund_no=refund_no, amount_minor=amount_minor, now=now)
    moved = Refund.objects.filter(pk=refund.pk).transition(
        to=RefundStatus.SUCCEEDED, provider_refund_no=provider_refund_no, refunded_at=now
    )
    if moved:
        _close_refunded(present)
    return moved


def settle_refunded_total(*, order: Order, total_minor: int, refund_no: str, now: datetime) -> bool:
    """As :func:`settle_refund`, of a provider that tells the running total.

    What is above the sum known so far is booked under ``refund_no``.
    """
    with transaction.atomic():
        present = Order.objects.filter(pk=order.pk).locked()
        refunds = Refund.objects.select_for_update().filter(order=present)
        booked = sum(refund.amount_minor for refund in refunds if refund.status == RefundStatus.SUCCEEDED)
        more = total_minor - booked
        if more <= 0 and present.is_paid:
            return False
        if any(refund.status == RefundStatus.PROCESSING for refund in refunds):
            raise RefundNotPossible(present.status)  # what is in the total is known once they have ended
        return settle_refund(
            order=present, refund_no=refund_no, amount_minor=more, provider_refund_no=None, now=now
        )


@transaction.atomic
def settle_return(*, payment: Payment, now: datetime) -> bool:
    """Take note that money which came in for nothing has been given back.

    :returns: ``True`` when this call booked it, ``False`` when it was booked before.
    """
    Order.objects.filter(pk=payment.order_id).locked()
    return Payment.objects.filter(pk=payment.pk).transition(to=PaymentStatus.REFUNDED, returned_at=now)


def begin_refund(*, order: Order, refund_no: str, amount_minor: int, now: datetime) -> Refund:
    """Return the refund of this number, its amount set aside. Call it with the order locked.

    :raises RefundMismatch, RefundNotPossible, RefundExceedsPayment: as :func:`settle_refund`.
    """
    refund = Refund.objects.select_for_update().filter(order=order, refund_no=refund_no).first()
    if refund and refund.amount_minor != amount_minor:
        raise RefundMismatch(refund_no)
    if refund and refund.status != RefundStatus.FAILED:
        return refund
    if not order.is_paid:
        raise RefundNotPossible(order.status)
    if not Order.objects.filter(pk=order.pk).reserve_refund(amount_minor=amount_minor):
        raise RefundExceedsPayment(refund_no)
    if refund:
        Refund.objects.filter(pk=refund.pk).transition(to=RefundStatus.PROCESSING)
        return refund
    return Refund.objects.create(
        order=order, refund_no=refund_no, amount_minor=amount_minor, currency=order.currency, created_at=now
    )


@transaction.atomic
def undo_refund(*, refund: Refund) -> None:
    """Take back what :func:`begin_refund` set aside: the provider gave nothing back."""
    order = Order.objects.filter(pk=refund.order_id)
    order.locked()
    if Refund.objects.filter(pk=refund.pk).transition(to=RefundStatus.FAILED):
        order.release_refund(amount_minor=refund.amount_minor)


def refund_number(*, order_no: str, refund_no: str) -> str:
    """What the provider knows a refund by."""
    return f"{order_no}-{refund_no}"


def refund_no_of(*, order_no: str, number: str) -> str:
    """The shop's number of a refund, in what the provider knows it by; one of its own desk stays as it is."""
    return number.removeprefix(f"{order_no}-")


def _pay_order(order: Order, paid_at: datetime) -> bool:
    try:
        return Order.objects.filter(pk=order.pk).transition(to=Status.PAID, paid_at=paid_at)
    except InvalidTransition:
        return False


def _row_of_charge(order: Order, provider: str, number: str, key: str | None) -> Payment:
    rows = Payment.objects.select_for_update().filter(provider=provider)
    asked = rows.filter(order=order, provider_payment_no=None)
    asked = asked.filter(provider_key=key) if key else asked.filter(status=PaymentStatus.PROCESSING)
    known = rows.filter(provider_payment_no=number).first()
    if known is None:
        return asked.first() or _new_payment(order, provider)
    if known.order_id != order.pk:
        raise PaymentMismatch(f"{provider} {number} is the payment of another order than {order.order_no}")
    if key:
        asked.delete()  # a notice was quicker, and has a row of its own: one charge, one row
    return known


def _new_payment(order: Order, provider: str, **values: str | None) -> Payment:
    return Payment.objects.create(
        order=order,
        provider=provider,
        amount_minor=order.amount_minor,
        currency=order.currency,
        created_at=timezone.now(),
        **values,
    )


def _close_refunded(order: Order) -> None:
    """Once all is given back: the order is REFUNDED, and what was not shipped goes back on the shelf."""
    done = Refund.objects.filter(order=order, status=RefundStatus.SUCCEEDED)
    # the lock sees what a rival has just committed, also past the snapshot of REPEATABLE READ
    if sum(done.select_for_update().values_list("amount_minor", flat=True)) != order.amount_minor:
        return
    if Order.objects.filter(pk=order.pk).transition(to=Status.REFUNDED):
        publish_refunded(order)
    if order.shipped_at is None:
        StockItem.objects.restore_all(reference=order.reference)
