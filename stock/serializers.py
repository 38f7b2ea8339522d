"""What a client sends, checked; and what it gets, spelt."""

from typing import Any, Final

from rest_framework import serializers

from shop.fields import WholeNumberField

from .models import MAX_QUANTITY, Deduction

MAX_VERSION: Final = 2**63 - 1


class DeductionSerializer(serializers.Serializer):
    """``{order_no, quantity, version?}``"""

    order_no = serializers.CharField(max_length=64)
    quantity = WholeNumberField(min_value=1, max_value=MAX_QUANTITY)
    version = WholeNumberField(
        min_value=0, max_value=MAX_VERSION, required=False, allow_null=True, default=None
    )

    def arguments(self) -> dict[str, Any]:
        """What the stock takes. The reference is none of the orders' own, which take theirs themselves."""
        arguments = dict(self.validated_data)
        order_no = arguments.pop("order_no")
        return {**arguments, "reference": f"deduction:{order_no}"}


def deduction_data(deduction: Deduction, *, sku: str, quantity: int) -> dict[str, Any]:
    """Spell a deduction; of a repeat, what is left now."""
    return {
        "sku": sku,
        "quantity": quantity,
        "remaining": deduction.remaining,
        "version": deduction.version,
        "isDuplicate": deduction.is_duplicate,
    }
