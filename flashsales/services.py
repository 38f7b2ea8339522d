"""Open a sale, buy one unit of it, and make the order of a ticket. The database decides each of them."""

from datetime import datetime
from functools import partial
from typing import Final
from uuid import UUID

from django.db import transaction

from orders.models import Article, Order
from orders.services import create_order as order
from stock.exceptions import InsufficientStock

from . import gate, queueing, reconciling
from .exceptions import AlreadyBought, SaleEnded, SaleNotBegun, SalesOverlap
from .models import FlashSale, Status, Ticket

LIMIT: Final = 1
"""Units that one user can buy in a sale."""


@transaction.atomic
def open_sale(*, sku: str, units: int, starts_at: datetime, ends_at: datetime, now: datetime) -> FlashSale:
    """Sell ``units`` of an article within that span; its gate is loaded after the commit.

    :raises Article.DoesNotExist: when the shop does not sell it.
    :raises SalesOverlap: when the article has another sale at that time.
    """
    Article.objects.select_for_update().get(sku=sku)  # two who open at once come one after the other
    if FlashSale.objects.overlapping(sku=sku, starts_at=starts_at, ends_at=ends_at).exists():
        raise SalesOverlap(sku)
    sale = FlashSale.objects.create(
        sku=sku, units=units, starts_at=starts_at, ends_at=ends_at, created_at=now
    )
    transaction.on_commit(partial(reconciling.refresh, sku, at_once=True), robust=True)
    return sale


def buy(*, sku: str, user_id: int, mark: str, now: datetime, using: str | None = None) -> tuple[Ticket, bool]:
    """Take a unit, make a ticket and publish that it waits for its order, in one transaction.

    ``mark`` is the digest of the key that it is asked by: the user's ticket answers a repeat for ever.

    :returns: the ticket, and ``True`` when this call made it.
    :raises FlashSale.DoesNotExist: when the article never had a sale.
    :raises AlreadyBought: when the user has a ticket under another key.
    :raises InsufficientStock: when no unit is left, or the user's ticket came to nothing.
    :raises SaleNotBegun, SaleEnded: when the sale does not run.
    """
    sale = FlashSale.objects.using(using).current(sku=sku, now=now)
    if known := Ticket.objects.using(using).filter(sale=sale, user_id=user_id).first():
        return _same(known, sku, mark), False  # first: the buyer of the last unit must not hear "sold out"
    with transaction.atomic(using=using):
        _take_unit(sale, now=now)
        tickets = Ticket.objects.using(using)
        values = {"mark": mark, "created_at": now, "queued_at": now}
        ticket, created = tickets.create_or_get(sale=sale, user_id=user_id, **values)
        if not created:
            raise _refusal(ticket, sku)  # and the unit goes back
        tell = partial(gate.record, sale=sale, user_id=user_id, mark=mark, holds_unit=True)
        transaction.on_commit(tell, using=using, robust=True)
        queueing.announce(ticket, using=using)
    return ticket, True


@transaction.atomic
def create_order(*, ticket: UUID, now: datetime) -> Ticket:
    """Make the order of a ticket, once however often it is asked for; the stock is taken with it.

    A ticket for which none is on hand any more comes to nothing, and its unit goes back to the sale.

    :raises Ticket.DoesNotExist: when there is none of that number.
    """
    row = Ticket.objects.filter(number=ticket)
    present = row.locked()
    if present.status != Status.QUEUED:
        return present
    try:
        made = _order(present, now=now)
    except InsufficientStock:
        _come_to_nothing(present)
    else:
        row.transition(to=Status.CREATED, order=made)
    return row.get()


def _order(ticket: Ticket, *, now: datetime) -> Order:
    sale = ticket.sale
    made, _created = order(
        user_id=ticket.user_id,
        cart_id=f"flash-sale-{sale.pk}",
        client_order_no=None,  # the ticket's lock and its unique order are what makes it one
        currency=Article.objects.get(sku=sale.sku).currency,
        quantities={sale.sku: LIMIT},
        now=now,
    )
    return made


def _come_to_nothing(ticket: Ticket) -> None:
    sale = ticket.sale
    Ticket.objects.filter(pk=ticket.pk).transition(to=Status.SOLD_OUT)
    FlashSale.objects.filter(pk=sale.pk).give_unit_back()
    tell = partial(gate.record, sale=sale, user_id=ticket.user_id, mark=ticket.mark, holds_unit=False)
    transaction.on_commit(tell, robust=True)


def _take_unit(sale: FlashSale, *, now: datetime) -> None:
    if FlashSale.objects.using(sale._state.db).filter(pk=sale.pk).take_unit(now=now):
        return
    if now < sale.starts_at:
        raise SaleNotBegun(sale.sku)
    raise SaleEnded(sale.sku) if sale.ends_at <= now else InsufficientStock(sale.sku)


def _same(ticket: Ticket, sku: str, mark: str) -> Ticket:
    if ticket.mark != mark:
        raise _refusal(ticket, sku)
    return ticket


def _refusal(ticket: Ticket, sku: str) -> Exception:
    """A ticket that came to nothing bought nothing, and there is no second one."""
    return InsufficientStock(sku) if ticket.status == Status.SOLD_OUT else AlreadyBought(sku)
