"""What a client sends, checked; and what it gets, spelt."""

from typing import Any

from rest_framework import serializers

from shop.envelopes import instant
from shop.fields import WholeNumberField

from .models import Ticket
from .services import LIMIT


class BuySerializer(serializers.Serializer):
    """``{quantity?}``: nobody shall believe that more than one was bought."""

    quantity = WholeNumberField(min_value=LIMIT, max_value=LIMIT, default=LIMIT)


def ticket_data(ticket: Ticket) -> dict[str, Any]:
    """Spell a ticket for its owner, with its present status and, once it has one, its order."""
    order = {"orderId": ticket.order.order_no} if ticket.order else {}
    return {
        "ticket": str(ticket.number),
        "status": ticket.status.lower(),
        **order,
        "isDuplicate": False,
        "createdAt": instant(ticket.created_at),
    }
