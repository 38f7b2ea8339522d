"""What a client sends to pay or to be paid back, checked; and what it gets, spelt."""

from typing import Any

from django.conf import settings
from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from orders.models import Order, Status
from shop.envelopes import instant
from shop.money import minor_units

from .models import Refund

UNKNOWN = "unknown"

REFUND_NO = r"\A[A-Za-z0-9_-]{1,39}\Z"
"""With the order's number in front, what every provider takes: 64 letters, digits and signs."""


class PaySerializer(serializers.Serializer):
    """``{method}``. The amount is the order's, whatever else is sent."""

    method = serializers.CharField(max_length=16)

    def validate_method(self, method: str) -> str:
        """Take a method that the shop has."""
        if method not in settings.PAYMENTS_METHODS:
            raise serializers.ValidationError(_("There is no such payment method."), code="unknown_method")
        return method


class AmountField(serializers.Field):
    """A decimal string with at most the decimals of the currency, above zero: ``"39.80"``."""

    default_error_messages = {
        "invalid": _('An amount above zero is expected, written as a string such as "39.80".')
    }

    def to_internal_value(self, data: Any) -> int:
        """Return whole minor units of the currency in the serializer's context."""
        try:
            amount_minor = minor_units(amount=data, currency=self.context["currency"])
        except (TypeError, ValueError):
            self.fail("invalid")
        if not amount_minor:
            self.fail("invalid")
        return amount_minor


class RefundSerializer(serializers.Serializer):
    """``{refund_no, amount}``"""

    refund_no = serializers.RegexField(REFUND_NO, trim_whitespace=False)
    amount = AmountField()


def pay_data(order: Order, *, unknown: bool = False) -> dict[str, Any]:
    """Spell the payment of an order, with its present status."""
    return {
        "orderId": order.order_no,
        "payStatus": UNKNOWN if unknown else _pay_status(order),
        "amount": order.amount,
        "currency": order.currency,
        "paidAt": instant(order.paid_at) if order.paid_at else None,
        "isDuplicate": False,
    }


def refund_data(order: Order, refund: Refund, *, unknown: bool = False) -> dict[str, Any]:
    """Spell a refund, with the order's present status."""
    return {
        "orderId": order.order_no,
        "refundNo": refund.refund_no,
        "refundStatus": UNKNOWN if unknown else "refunded",
        "amount": refund.amount,
        "currency": refund.currency,
        "refundedAt": instant(refund.refunded_at) if refund.refunded_at else None,
        "status": order.status,
        "isDuplicate": False,
    }


def _pay_status(order: Order) -> str:
    return "refunded" if order.status == Status.REFUNDED else "paid"
