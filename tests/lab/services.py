"""Service functions that happen once."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

from idempotency.decorators import idempotent

from .effects import database, do
from .models import Effect


@idempotent("lab.grant", key="order_no", scope="user_id", retention=None)
def grant(
    *, user_id: int, order_no: str, campaign: str = "spring", amount: Decimal | None = None
) -> dict[str, Any]:
    """Grant a coupon."""
    do(f"granted {order_no}")
    return {"order_no": order_no, "amount": amount, "until": timedelta(days=7), "parts": ("a", "b")}


@idempotent("lab.positional", key=("order_no", "line"), fingerprint=("quantity",))
def deduct(order_no: str, line: int, quantity: int = 1, note: str = "") -> int:
    do(f"deducted {quantity}")
    return quantity


@idempotent(
    "lab.computed",
    key=lambda message: message["id"],
    scope=lambda message: message["tenant"],
    fingerprint=None,
    wait=timedelta(seconds=5),
)
def consume(message: dict[str, Any]) -> None:
    do(f"consumed {message['id']}")


@idempotent("lab.async", key="order_no")
async def agrant(order_no: str, campaign: str = "spring") -> dict[str, Any]:
    """Grant a coupon, asynchronously."""
    await Effect.objects.using(database()).acreate(name=f"granted {order_no}")
    if campaign == "broken":
        raise ValueError(campaign)
    return {"count": await Effect.objects.using(database()).acount()}
