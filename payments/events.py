"""What the shop tells of its payments: messages written with the change, sent after its commit."""

from datetime import datetime
from typing import Any

from idempotency.outbox import publish
from orders.models import Order


def publish_paid(order: Order, *, paid_at: datetime) -> None:
    """Tell that an order was paid. Call it in the transaction that moves it."""
    publish("orders.paid", {**_facts(order), "paid_at": paid_at.isoformat()}, key=order.order_no)


def publish_refunded(order: Order) -> None:
    """Tell that all of an order's money was given back. Call it in the transaction that moves it."""
    publish("orders.refunded", _facts(order), key=order.order_no)


def _facts(order: Order) -> dict[str, Any]:
    return {
        "order_no": order.order_no,
        "user_id": order.user_id,
        "amount_minor": order.amount_minor,
        "currency": order.currency,
    }
