"""Charge an order once, whatever the provider, the network and this process do."""

import logging
from dataclasses import asdict
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.utils import timezone

from idempotency.decorators import idempotent
from idempotency.exceptions import OutcomeUnknown, Refused
from idempotency.leased import Claim
from orders.models import Order, Status

from .exceptions import NothingCharged, NotPayable, PaymentDeclined, PaymentMismatch, ProviderUnreachable
from .models import Payment, PaymentStatus
from .notices import take_waiting
from .providers import provider
from .providers.base import Charge, Declined, NoAnswer, Unreachable
from .services import settle_payment

logger = logging.getLogger("payments")

REFUSALS: Final[dict[str, type[Refused]]] = {
    refusal.code: refusal for refusal in (PaymentDeclined, ProviderUnreachable, NothingCharged)
}


@idempotent("payments.pay", key="order_no", lease=settings.PAYMENTS_LEASE, retention=None, fingerprint=None)
def pay(*, order_no: str, method: str | None, claim: Claim) -> dict[str, Any]:
    """Charge the order and settle it. Whoever repeats this call, by whatever method, gets the first charge.

    An attempt that was cut off is found again by its first provider, whichever ``method`` the repeat names.
    ``method=None`` finishes what was begun and starts nothing.

    :returns: ``settled``: see :class:`~payments.services.Settled`.
    :raises PaymentDeclined, ProviderUnreachable, NothingCharged, NotPayable: for certain; no money moved.
    :raises OutcomeUnknown: when money may have moved: the next call asks.
    """
    begun = claim.step("begin", lambda: _begin(order_no, method, claim.provider_key("charge")))
    answer = claim.call("charge", lambda key: _ask(begun, key, claim, asked=method is not None))
    if refusal := answer.get("refused"):
        claim.step("undo", partial(_undo, begun))
        raise REFUSALS[refusal]
    try:
        return claim.complete(partial(_settle, begun, answer))
    except PaymentMismatch as mismatch:  # money moved, and not as we asked: for people
        logger.error("payment of %s: %s", order_no, mismatch)
        raise OutcomeUnknown from mismatch


def _begin(order_no: str, method: str | None, key: str) -> dict[str, Any]:
    """Leave something to be found, before any money moves."""
    order = Order.objects.filter(order_no=order_no).locked()
    if method is None:
        raise NothingCharged
    if order.status != Status.PENDING or order.amount_minor == 0:  # an imported order may cost nothing
        raise NotPayable(order.status)
    payment = Payment.objects.create(
        order=order,
        provider=settings.PAYMENTS_METHODS[method],
        provider_key=key,
        amount_minor=order.amount_minor,
        currency=order.currency,
        created_at=timezone.now(),
    )
    money = {"amount_minor": order.amount_minor, "currency": order.currency}
    return {"order_no": order_no, "provider": payment.provider, "key": key, **money}


def _ask(begun: dict[str, Any], key: str, claim: Claim, *, asked: bool) -> dict[str, Any]:
    """Return what is certain: ``charge``, or the code of a refusal as ``refused``.

    :raises OutcomeUnknown: otherwise.
    """
    is_first = claim.attempts == 1
    try:
        charge = _charge(begun, key) if is_first else _find_or_charge(begun, key, claim, asked=asked)
    except Declined:
        return {"refused": PaymentDeclined.code}
    except Unreachable as error:
        if is_first:
            return {"refused": ProviderUnreachable.code}
        raise OutcomeUnknown from error  # nothing was sent now, but perhaps before
    except NoAnswer as error:
        raise OutcomeUnknown from error
    return {"refused": NothingCharged.code} if charge is None else {"charge": asdict(charge)}


def _charge(begun: dict[str, Any], key: str) -> Charge:
    return provider(begun["provider"]).charge(
        key=key,
        order_no=begun["order_no"],
        amount_minor=begun["amount_minor"],
        currency=begun["currency"],
    )


def _find_or_charge(begun: dict[str, Any], key: str, claim: Claim, *, asked: bool) -> Charge | None:
    """Take up what an earlier attempt left: ask first, and charge only where somebody still wants to pay."""
    gateway = provider(begun["provider"])
    if found := gateway.find(key=key):
        return found
    claim.heartbeat()
    if asked and Order.objects.filter(order_no=begun["order_no"], status=Status.PENDING).exists():
        return _charge(begun, key)
    # From here on the earlier request, wherever it still is, cannot charge any more: the key may be freed.
    return gateway.close(key=key)


def _undo(begun: dict[str, Any]) -> None:
    Order.objects.filter(order_no=begun["order_no"]).locked()
    rows = Payment.objects.filter(provider_key=begun["key"])
    rows.filter(status=PaymentStatus.PROCESSING).update(status=PaymentStatus.FAILED)


def _settle(begun: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    charge = Charge(**answer["charge"])
    settled = settle_payment(
        order=Order.objects.get(order_no=begun["order_no"]),
        provider=begun["provider"],
        provider_payment_no=charge.payment_no,
        amount_minor=charge.amount_minor,
        currency=charge.currency,
        paid_at=charge.paid_at,
        provider_key=begun["key"],
    )
    take_waiting(order_no=begun["order_no"], now=timezone.now())  # a refund's notice may have been quicker
    return {"settled": settled.value}
