"""Many orders of one line each, created or corrected at once: what a file brings."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from django.db import IntegrityError, transaction

from idempotency import conf
from idempotency.exceptions import OperationInProgress
from stock import bulk as stock
from stock.bulk import Pieces

from .models import Order, OrderLine
from .numbers import new_order_no

ORDER_FIELDS: Final = ("amount_minor", "customer_phone", "order_date", "remark", "revision")


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """An order of one line, as its buyer's file spells it. The price is the file's, in minor units."""

    client_order_no: str
    customer_phone: str
    sku: str
    quantity: int
    price_minor: int
    currency: str
    order_date: date
    remark: str

    @property
    def amount_minor(self) -> int:
        """What it costs."""
        return self.price_minor * self.quantity


def known_orders(*, user_id: int, numbers: Collection[str], lock: bool = False) -> dict[str, Order]:
    """Return a user's orders by their client's number, with their lines; ``lock`` keeps rivals out."""
    orders = Order.objects.filter(user_id=user_id, client_order_no__in=numbers).order_by("pk")
    if lock:
        orders = orders.select_for_update()
    return {order.client_order_no: order for order in orders.prefetch_related("lines")}


def difference(order: Order, wanted: Wanted) -> str | None:
    """Return the first cell in which an order is another than the wanted one; ``None`` where none is."""
    lines = list(order.lines.all())
    if len(lines) != 1:
        return "order_no"
    cells = {
        "customer_phone": (order.customer_phone, wanted.customer_phone),
        "sku": (lines[0].sku, wanted.sku),
        "quantity": (lines[0].quantity, wanted.quantity),
        "unit_price": ((lines[0].price_minor, order.currency), (wanted.price_minor, wanted.currency)),
        "order_date": (order.order_date, wanted.order_date),
        "remark": (order.remark, wanted.remark),
    }
    return next((name for name, (known, new) in cells.items() if known != new), None)


@transaction.atomic
def create_orders(*, user_id: int, cart_id: str, wanted: Sequence[Wanted], now: datetime) -> None:
    """Order all of ``wanted`` and take them from the stock, or nothing of it.

    :raises InsufficientStock: when an article runs short.
    :raises OperationInProgress: when a rival has made one of these orders since the caller looked.
    """
    orders = [
        Order(
            user_id=user_id,
            client_order_no=each.client_order_no,
            order_no=new_order_no(now=now),
            cart_id=cart_id,
            currency=each.currency,
            amount_minor=each.amount_minor,
            customer_phone=each.customer_phone,
            order_date=each.order_date,
            remark=each.remark,
            created_at=now,
        )
        # one order for everybody: two files with the same numbers never wait for each other in a circle
        for each in sorted(wanted, key=lambda each: each.client_order_no)
    ]
    ids = _insert(orders)
    by_number = {each.client_order_no: each for each in wanted}
    lines = [(order, by_number[order.client_order_no]) for order in orders]
    OrderLine.objects.bulk_create(
        OrderLine(
            order_id=ids[order.order_no], sku=line.sku, quantity=line.quantity, price_minor=line.price_minor
        )
        for order, line in lines
    )
    stock.move(taken=[_pieces(order.reference, line) for order, line in lines], now=now)


@transaction.atomic
def correct_orders(*, changes: Sequence[tuple[Order, Wanted]], now: datetime) -> None:
    """Make each order, of one line and locked by the caller, what its file wants; stock follows once.

    Where article or quantity change, the old revision gives its pieces back and a new one takes its own.

    :raises InsufficientStock: when an article runs short; nothing is changed.
    """
    moved = [(order, line, each) for order, line, each in _with_lines(changes) if _moves(line, each)]
    given_back = [_pieces(order.reference, line) for order, line, _each in moved]
    taken = [_pieces(order.reference_of(revision=order.revision + 1), each) for order, _line, each in moved]
    stock.move(taken=taken, given_back=given_back, now=now)
    rows = list(_corrected(_with_lines(changes)))
    Order.objects.bulk_update([order for order, _line in rows], ORDER_FIELDS)
    OrderLine.objects.bulk_update([line for _order, line in rows], ["sku", "quantity", "price_minor"])


def _insert(orders: list[Order]) -> Mapping[str, int]:
    try:
        with transaction.atomic():  # a savepoint: the conflict leaves the rest usable
            Order.objects.bulk_create(orders)
    except IntegrityError as error:
        raise OperationInProgress(conf.get("RETRY_AFTER")) from error
    if orders and orders[0].pk is None:  # MySQL does not tell
        numbers = [order.order_no for order in orders]
        return dict(Order.objects.filter(order_no__in=numbers).values_list("order_no", "pk"))
    return {order.order_no: order.pk for order in orders}


def _with_lines(changes: Iterable[tuple[Order, Wanted]]) -> Iterable[tuple[Order, OrderLine, Wanted]]:
    return ((order, order.lines.all()[0], each) for order, each in changes)


def _moves(line: OrderLine, wanted: Wanted) -> bool:
    return (line.sku, line.quantity) != (wanted.sku, wanted.quantity)


def _corrected(
    changes: Iterable[tuple[Order, OrderLine, Wanted]],
) -> Iterable[tuple[Order, OrderLine]]:
    """Build fresh rows: a second attempt finds the caller's as they were."""
    for order, line, each in changes:
        yield (
            Order(
                pk=order.pk,
                amount_minor=each.amount_minor,
                customer_phone=each.customer_phone,
                order_date=each.order_date,
                remark=each.remark,
                revision=order.revision + _moves(line, each),
            ),
            OrderLine(pk=line.pk, sku=each.sku, quantity=each.quantity, price_minor=each.price_minor),
        )


def _pieces(reference: str, line: OrderLine | Wanted) -> Pieces:
    return Pieces(reference=reference, sku=line.sku, quantity=line.quantity)
