"""What a client sends, checked; and what it gets, spelt."""

from collections import Counter
from typing import Any

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from shop.envelopes import instant
from shop.fields import WholeNumberField

from .exceptions import CurrencyMismatch, UnknownSku
from .models import Order

MAX_LINES = 100
MAX_QUANTITY = 10_000
"""Of one line; more is a slip of the keyboard."""

UNSELLABLE = {
    UnknownSku: _("There is no article %(sku)s."),
    CurrencyMismatch: _("%(sku)s is not sold in %(currency)s."),
}


class LineSerializer(serializers.Serializer):
    """``{sku, quantity}``"""

    sku = serializers.CharField(max_length=64)
    quantity = WholeNumberField(min_value=1, max_value=MAX_QUANTITY)


class OrderSerializer(serializers.Serializer):
    """``{cart_id, client_order_no?, currency, lines: [{sku, quantity}]}``"""

    cart_id = serializers.CharField(max_length=64)
    client_order_no = serializers.CharField(max_length=64, required=False, allow_null=True, default=None)
    currency = serializers.CharField(max_length=3)
    lines = LineSerializer(many=True, min_length=1, max_length=MAX_LINES)

    def arguments(self) -> dict[str, Any]:
        """What the service takes: two lines of one article are one line of their sum."""
        arguments = dict(self.validated_data)
        quantities: Counter[str] = Counter()
        for line in arguments.pop("lines"):
            quantities[line["sku"]] += line["quantity"]
        return {**arguments, "quantities": quantities}

    def unsellable(self, refusal: UnknownSku | CurrencyMismatch) -> serializers.ValidationError:
        """Name the line that the shop cannot sell."""
        lines = self.validated_data["lines"]
        number = next(number for number, line in enumerate(lines) if line["sku"] == refusal.sku)
        text = UNSELLABLE[type(refusal)] % vars(refusal)
        return serializers.ValidationError({"lines": {number: {"sku": [text]}}}, code=refusal.code)


def order_data(order: Order) -> dict[str, Any]:
    """Spell an order for its owner, with its present status."""
    return {
        "orderId": order.order_no,
        "status": order.status,
        "amount": order.amount,
        "currency": order.currency,
        "isDuplicate": False,
        "createdAt": instant(order.created_at),
    }
