"""Sales, and buyers in them."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.contrib.auth import get_user_model
from django.db import connections
from django.utils import timezone
from rest_framework.test import APIClient

from flashsales import door, gate, services
from flashsales.models import FlashSale, Ticket
from idempotency.models import OutboxMessage
from orders.models import Order
from stock.models import StockItem
from tests.shopping import sell, shopper

SKU = "TEA-100"
HOUR = timedelta(hours=1)
LONG_AGO = "1000000000000000"
"""As the gate writes it."""


def open_sale(*, units: int = 3, stock: int = 100, begins_in: timedelta = -HOUR) -> FlashSale:
    sell(sku=SKU, stock=stock)
    return another_sale(units=units, begins_in=begins_in)


def another_sale(*, units: int = 3, begins_in: timedelta = -HOUR) -> FlashSale:
    now = timezone.now()
    span = {"starts_at": now + begins_in, "ends_at": now + begins_in + 2 * HOUR}
    return services.open_sale(sku=SKU, units=units, now=now, **span)


def end(sale: FlashSale) -> None:
    FlashSale.objects.filter(pk=sale.pk).update(ends_at=timezone.now())


def post(client: APIClient, key: str | None = None, *, sku: str = SKU, body: Any = None) -> Any:
    """Buy under a fresh key, unless ``key`` names one; ``key=""`` sends none."""
    headers = {} if key == "" else {"Idempotency-Key": key or str(uuid4())}
    return client.post(f"/api/flash-sales/{sku}/orders", body, headers=headers)


def crowd(number: int) -> list[APIClient]:
    return [shopper(f"buyer-{index}") for index in range(number)]


def user_id(name: str) -> int:
    return get_user_model().objects.get_or_create(username=name)[0].pk


def buy(name: str = "alice", key: str = "k") -> Ticket:
    """Buy as the view does: through the door, then in the database."""
    buyer = {"user_id": user_id(name), "mark": door.mark_of(key)}
    with door.passed(sku=SKU, **buyer):
        ticket, _created = services.buy(sku=SKU, now=timezone.now(), **buyer)
    return ticket


def work(number: str | UUID | None = None) -> Ticket:
    """Make the order of a ticket, as the worker does; of the only one there is, unless it is named."""
    ticket = number or Ticket.objects.get().number
    return services.create_order(ticket=UUID(str(ticket)), now=timezone.now())


def counts() -> dict[str, int]:
    """What a refusal must not change."""
    models = (Ticket, Order, OutboxMessage)
    sold = sum(FlashSale.objects.values_list("sold", flat=True))
    on_hand = StockItem.objects.get(sku=SKU).on_hand
    return {model.__name__: model.objects.count() for model in models} | {"sold": sold, "on_hand": on_hand}


def refusal(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def left() -> int | None:
    return gate.left(SKU)


def closing(act: Callable[[int], Any]) -> Callable[[int], Any]:
    """For threads: end their database connections with them."""

    def act_and_close(index: int) -> Any:
        try:
            return act(index)
        finally:
            connections.close_all()

    return act_and_close
