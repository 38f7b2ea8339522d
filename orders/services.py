"""Create an order once, cancel it once, ship it once."""

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction

from idempotency.transitions import InvalidTransition
from stock.models import StockItem

from .exceptions import CurrencyMismatch, OrderNumberReused, UnknownSku
from .models import Article, Order, OrderLine, Status
from .numbers import new_order_no


@transaction.atomic
def create_order(
    *,
    user_id: int,
    cart_id: str,
    client_order_no: str | None,
    currency: str,
    quantities: Mapping[str, int],
    now: datetime,
) -> tuple[Order, bool]:
    """Order ``quantities`` (pieces by sku) and take them from the stock, in one transaction.

    A user's ``client_order_no`` makes one order for ever, however many callers bring it at once.

    :returns: the order, and ``True`` when this call made it.
    :raises OrderNumberReused: when that number has an order with other lines or another currency.
    :raises UnknownSku: when the shop does not sell an article.
    :raises CurrencyMismatch: when an article has its price in another currency.
    :raises InsufficientStock: when an article runs short.
    """
    if order := _known(user_id, client_order_no):  # first: prices and stock may have changed since
        return _same(order, currency, quantities), False
    prices = _prices(quantities, currency)
    order, created = Order.objects.create_or_get(
        user_id=user_id,
        client_order_no=client_order_no,
        order_no=new_order_no(now=now),
        cart_id=cart_id,
        currency=currency,
        amount_minor=sum(prices[sku] * quantity for sku, quantity in quantities.items()),
        created_at=now,
    )
    if not created:
        return _same(order, currency, quantities), False
    OrderLine.objects.bulk_create(
        OrderLine(order=order, sku=sku, quantity=quantity, price_minor=prices[sku])
        for sku, quantity in quantities.items()
    )
    StockItem.objects.deduct_all(quantities=quantities, reference=order.reference)
    return order, True


@transaction.atomic
def cancel_order(*, order: Order, now: datetime) -> bool:
    """Cancel a pending order and give its stock back, once.

    :returns: ``True`` when this call cancelled it, ``False`` when it was cancelled before.
    :raises InvalidTransition: when it has gone too far.
    """
    row = Order.objects.filter(pk=order.pk)
    moved = row.transition(to=Status.CANCELLED, cancelled_at=now)
    if moved:
        # the caller's copy may be older than the order's last correction
        StockItem.objects.restore_all(reference=row.locked().reference)
    return moved


@transaction.atomic
def ship_order(*, order: Order, now: datetime) -> bool:
    """Ship a paid order.

    :returns: ``True`` when this call shipped it, ``False`` when it was shipped before.
    :raises InvalidTransition: when it is not paid, or all of its money goes back.
    """
    row = Order.objects.filter(pk=order.pk)
    present = row.locked()
    if present.status == Status.PAID and present.refunded_minor == present.amount_minor:
        raise InvalidTransition(Status.PAID, Status.SHIPPED)
    return row.transition(to=Status.SHIPPED, shipped_at=now)


def _known(user_id: int, client_order_no: str | None) -> Order | None:
    if client_order_no is None:
        return None
    return Order.objects.filter(user_id=user_id, client_order_no=client_order_no).first()


def _same(order: Order, currency: str, quantities: Mapping[str, int]) -> Order:
    if (order.currency, order.quantities()) != (currency, dict(quantities)):
        raise OrderNumberReused(order.order_no)
    return order


def _prices(quantities: Mapping[str, int], currency: str) -> dict[str, int]:
    articles = {article.sku: article for article in Article.objects.filter(sku__in=quantities)}
    for sku in quantities:
        if sku not in articles:
            raise UnknownSku(sku)
        if articles[sku].currency != currency:
            raise CurrencyMismatch(sku, currency)
    return {sku: article.price_minor for sku, article in articles.items()}
