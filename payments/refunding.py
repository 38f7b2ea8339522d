"""Give money back once for each refund number, and once for each charge that came in for nothing."""

from functools import partial
from typing import Any, Final

from django.conf import settings
from django.utils import timezone

from idempotency.decorators import idempotent
from idempotency.exceptions import OutcomeUnknown, Refused
from idempotency.leased import Claim
from orders.models import Order

from .exceptions import NothingCharged, ProviderUnreachable, RefundDeclined, RefundMismatch
from .models import Payment, PaymentStatus, Refund, RefundStatus
from .notices import take_waiting
from .providers import provider
from .providers.base import Declined, NoAnswer, Unreachable
from .services import begin_refund, refund_number, settle_refund, settle_return, undo_refund

REFUSALS: Final[dict[str, type[Refused]]] = {
    refusal.code: refusal for refusal in (RefundDeclined, ProviderUnreachable)
}


@idempotent(
    "payments.refund",
    key=("order_no", "refund_no"),
    lease=settings.PAYMENTS_LEASE,
    retention=None,
    fingerprint=None,
)
def refund(*, order_no: str, refund_no: str, amount_minor: int | None, claim: Claim) -> dict[str, Any]:
    """Give ``amount_minor`` of the order's payment back. Its number is used for one amount, for ever.

    ``amount_minor=None`` finishes what was begun and starts nothing.

    :returns: ``refund``: the id of the row.
    :raises RefundMismatch: when the number is known with another amount.
    :raises RefundNotPossible, RefundExceedsPayment, RefundDeclined, ProviderUnreachable: for certain; no
        money moved.
    :raises OutcomeUnknown: when money may have moved: the next call asks.
    """
    begun = claim.step("begin", lambda: _begin(order_no, refund_no, amount_minor))
    if amount_minor not in (None, begun["amount_minor"]):
        raise RefundMismatch(refund_no)
    if begun["done"]:
        return claim.complete(lambda: {"refund": begun["refund"]})
    answer = claim.call("refund", lambda key: _ask(begun, is_first=claim.attempts == 1))
    if refusal := answer.get("refused"):
        claim.step("undo", lambda: _undo(begun))
        raise REFUSALS[refusal]
    return claim.complete(partial(_settle, begun, answer))


@idempotent(
    "payments.return", key="payment_id", lease=settings.PAYMENTS_LEASE, retention=None, fingerprint=None
)
def give_back(*, payment_id: int, claim: Claim) -> dict[str, Any]:
    """Give back a payment that is REFUND_DUE.

    :raises RefundDeclined, ProviderUnreachable: for certain; no money moved, and it is still due.
    :raises OutcomeUnknown: when money may have moved: the next call asks.
    """
    payment = Payment.objects.select_related("order").get(pk=payment_id)
    if payment.status == PaymentStatus.REFUND_DUE:
        answer = claim.call("refund", lambda key: _ask(_whole(payment), is_first=claim.attempts == 1))
        if refusal := answer.get("refused"):
            raise REFUSALS[refusal]
    return claim.complete(lambda: {"returned": settle_return(payment=payment, now=timezone.now())})


def _begin(order_no: str, refund_no: str, amount_minor: int | None) -> dict[str, Any]:
    """Set the amount aside, before any money moves."""
    order = Order.objects.filter(order_no=order_no).locked()
    if amount_minor is None:
        raise NothingCharged
    row = begin_refund(order=order, refund_no=refund_no, amount_minor=amount_minor, now=timezone.now())
    payment = Payment.objects.get(order=order, status=PaymentStatus.SUCCEEDED)
    return {
        "refund": row.pk,
        "done": row.status == RefundStatus.SUCCEEDED,
        "provider": payment.provider,
        "payment_no": payment.provider_payment_no,
        "number": refund_number(order_no=order_no, refund_no=refund_no),
        "amount_minor": amount_minor,
        "currency": order.currency,
    }


def _whole(payment: Payment) -> dict[str, Any]:
    return {
        "provider": payment.provider,
        "payment_no": payment.provider_payment_no,
        "number": f"{payment.order.order_no}@{payment.pk}",  # no refund number holds an @
        "amount_minor": payment.amount_minor,
        "currency": payment.currency,
    }


def _ask(begun: dict[str, Any], *, is_first: bool) -> dict[str, Any]:
    """Return what is certain: the provider's ``number``, or the code of a refusal as ``refused``.

    The provider does it once for each number, so asking again is how we find out.

    :raises OutcomeUnknown: otherwise.
    """
    try:
        number = provider(begun["provider"]).refund(
            payment_no=begun["payment_no"],
            number=begun["number"],
            amount_minor=begun["amount_minor"],
            currency=begun["currency"],
        )
    except Declined:
        return {"refused": RefundDeclined.code}
    except Unreachable as error:
        if is_first:
            return {"refused": ProviderUnreachable.code}
        raise OutcomeUnknown from error  # nothing was sent now, but perhaps before
    except NoAnswer as error:
        raise OutcomeUnknown from error
    return {"number": number}


def _settle(begun: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    row = Refund.objects.select_related("order").get(pk=begun["refund"])
    settle_refund(
        order=row.order,
        refund_no=row.refund_no,
        amount_minor=row.amount_minor,
        provider_refund_no=answer["number"],
        now=timezone.now(),
    )
    take_waiting(order_no=row.order.order_no, now=timezone.now())  # a running total may have waited for this
    return {"refund": row.pk}


def _undo(begun: dict[str, Any]) -> None:
    row = Refund.objects.select_related("order").get(pk=begun["refund"])
    undo_refund(refund=row)
    take_waiting(order_no=row.order.order_no, now=timezone.now())
