"""What the callbacks are about, and what they have done to it."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Sum
from django.utils import timezone

from idempotency.models import IdempotencyRecord
from orders.models import Order, OrderLine
from payments.models import Fate, Notice, Payment, PaymentStatus, Refund, RefundStatus
from stock.models import StockItem

SKU = "TEA-100"


def place(order_no: str = "SO-2024-0001", *, amount_minor: int = 3980, currency: str = "CNY") -> Order:
    """A pending order of two pieces, taken from a stock of 100."""
    user, _created = get_user_model().objects.get_or_create(username="alice")
    order = Order.objects.create(
        order_no=order_no,
        user=user,
        cart_id="67890",
        currency=currency,
        amount_minor=amount_minor,
        created_at=timezone.now(),
    )
    OrderLine.objects.create(order=order, sku=SKU, quantity=2, price_minor=amount_minor // 2)
    StockItem.objects.get_or_create(sku=SKU, defaults={"on_hand": 100})
    StockItem.objects.deduct(sku=SKU, quantity=2, reference=order.reference)
    return order


@dataclass(frozen=True, kw_only=True)
class State:
    """All that a callback could have changed of one order."""

    status: str = "PENDING"
    paid: int = 0
    due: int = 0
    refunded: int = 0
    payments: tuple[str, ...] = ()
    failed: int = 0
    refunds: tuple[int, ...] = ()
    stock: int = 98


def state(order_no: str = "SO-2024-0001") -> State:
    order = Order.objects.get(order_no=order_no)
    charged = Payment.objects.filter(order=order).exclude(status=PaymentStatus.FAILED)
    refunds = Refund.objects.filter(order=order, status=RefundStatus.SUCCEEDED).order_by("pk")
    return State(
        status=order.status,
        paid=_sum(charged.filter(status=PaymentStatus.SUCCEEDED)),
        due=_sum(charged.filter(status=PaymentStatus.REFUND_DUE)),
        refunded=order.refunded_minor,
        payments=tuple(charged.order_by("pk").values_list("provider_payment_no", flat=True)),
        failed=Payment.objects.filter(order=order, status=PaymentStatus.FAILED).count(),
        refunds=tuple(refunds.values_list("amount_minor", flat=True)),
        stock=StockItem.objects.get(sku=SKU).on_hand,
    )


def fates() -> list[str]:
    return list(Notice.objects.order_by("pk").values_list("fate", flat=True))


def nothing_is_stored() -> bool:
    return not (Notice.objects.exists() or IdempotencyRecord.objects.exists() or Payment.objects.exists())


def records() -> int:
    return IdempotencyRecord.objects.count()


def waits_for_people() -> Any:
    """The one notice that somebody has to look at."""
    return Notice.objects.exclude(fate__in=[Fate.APPLIED, Fate.NOTHING_NEW]).get()


def _sum(rows: Any) -> int:
    return rows.aggregate(total=Sum("amount_minor"))["total"] or 0
