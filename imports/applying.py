"""What one chunk of lines does to the orders, by mode. The caller owns the transaction.

batch, incremental   unknown orders are created; known ones are skipped where equal, else rejected
update               known orders are corrected while they are pending; unknown ones are rejected
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from orders import bulk
from orders.bulk import Wanted
from orders.models import HIGHEST_PRICE_MINOR, Article, Order
from orders.models import Status as OrderStatus
from orders.serializers import MAX_QUANTITY
from payments.models import Payment, PaymentStatus
from stock import bulk as stock
from stock.exceptions import InsufficientStock

from .models import AppliedUpdate, Import, Mode
from .reading.lines import Line, Rejection
from .reading.repeats import Repeat

CURRENCY: Final = "CNY"
"""What the prices of a file are in."""

Item = Line | Rejection | Repeat

INSUFFICIENT: Final = _("The stock has fewer pieces than that.")
CONFLICT: Final = _("The order is known with another value here; it was left as it is.")
UNKNOWN_ORDER: Final = _("No order has this number: there is nothing to correct.")
WRONG_STATUS: Final = _("The order is not pending any more and cannot be corrected.")
BEING_PAID: Final = _("A payment of this order is under way: it cannot be corrected now.")
SEVERAL_LINES: Final = _("The order has several articles and cannot be corrected by a file.")


@dataclass(kw_only=True)
class Tally:
    """What became of the lines of one chunk."""

    counts: Counter[str] = field(default_factory=Counter)
    rejections: list[Rejection] = field(default_factory=list)
    repeats: list[Repeat] = field(default_factory=list)

    def reject(self, rejection: Rejection) -> None:
        """Count a line that is not taken, and keep why."""
        self.counts["rejected"] += 1
        self.rejections.append(rejection)

    def refuse(self, line: Line, column: str, code: str, reason: object) -> None:
        """Reject a line that reads well."""
        self.reject(
            Rejection(number=line.number, column=column, reason=reason, code=code, order_no=line.order_no)
        )

    def sort(self, items: Iterable[Item]) -> Iterator[Line]:
        """Yield the lines; what is none is counted."""
        for item in items:
            if isinstance(item, Line):
                yield item
            elif isinstance(item, Rejection):
                self.reject(item)
            else:
                self.counts["skipped"] += 1
                self.repeats.append(item)


def apply(*, source: Import, items: Iterable[Item], now: datetime) -> Tally:
    """Do what the lines ask for, each once.

    :raises OperationInProgress: when a rival has made one of the orders meanwhile: begin the transaction
        anew.
    """
    tally = Tally()
    lines = list(tally.sort(items))
    known = bulk.known_orders(
        user_id=source.user_id,
        numbers=[line.order_no for line in lines],
        lock=source.mode == Mode.UPDATE,
    )
    HANDLERS[Mode(source.mode)](source, lines, known, tally, now)
    return tally


def _add(source: Import, lines: Iterable[Line], known: dict[str, Order], tally: Tally, now: datetime) -> None:
    new = list(_new(lines, known, tally))
    _create(source, list(_sold(new, tally)), tally, now)


def _new(lines: Iterable[Line], known: dict[str, Order], tally: Tally) -> Iterator[Line]:
    for line in lines:
        if line.order_no not in known:
            yield line
        elif column := bulk.difference(known[line.order_no], _wanted(line)):
            tally.refuse(line, column, "conflict", CONFLICT)
        else:
            tally.counts["skipped"] += 1


def _sold(lines: Sequence[Line], tally: Tally) -> Iterator[Line]:
    """Yield the lines whose article the shop sells in such a number for such a price."""
    skus = {line.sku for line in lines}
    currencies = dict(Article.objects.filter(sku__in=skus).values_list("sku", "currency"))
    for line in lines:
        if line.sku not in currencies:
            tally.refuse(
                line, "sku", "unknown_sku", format_lazy(_("There is no article {sku}."), sku=line.sku)
            )
        elif currencies[line.sku] != CURRENCY:
            text = format_lazy(_("{sku} is not sold in {currency}."), sku=line.sku, currency=CURRENCY)
            tally.refuse(line, "sku", "currency_mismatch", text)
        elif line.quantity > MAX_QUANTITY:
            text = format_lazy(_("One order takes at most {most} pieces."), most=MAX_QUANTITY)
            tally.refuse(line, "quantity", "quantity_too_large", text)
        elif line.unit_price_minor > HIGHEST_PRICE_MINOR:
            tally.refuse(line, "unit_price", "price_too_high", _("No article costs that much."))
        else:
            yield line


def _create(source: Import, lines: list[Line], tally: Tally, now: datetime) -> None:
    try:
        _order(source, lines, now)
    except InsufficientStock:  # all of it is undone: now only as many as there are, in the file's order
        lines = list(_in_stock(lines, tally))
        _order(source, lines, now)
    tally.counts["created"] += len(lines)


def _order(source: Import, lines: Iterable[Line], now: datetime) -> None:
    bulk.create_orders(
        user_id=source.user_id, cart_id=source.cart_id, wanted=[_wanted(line) for line in lines], now=now
    )


def _in_stock(lines: Iterable[Line], tally: Tally) -> Iterator[Line]:
    left = Counter(stock.levels(skus={line.sku for line in lines}))
    for line in lines:
        if left[line.sku] < line.quantity:
            tally.refuse(line, "quantity", InsufficientStock.code, INSUFFICIENT)
        else:
            left[line.sku] -= line.quantity
            yield line


def _correct(
    source: Import, lines: Iterable[Line], known: dict[str, Order], tally: Tally, now: datetime
) -> None:
    changing = list(_changing(source, lines, known, tally))
    changes = [(line, known[line.order_no]) for line in _sold(changing, tally)]
    try:
        _change(source, changes, now)
    except InsufficientStock:  # all of it is undone: now one by one
        changes = [change for change in changes if _changed_alone(source, change, tally, now)]
    tally.counts["updated"] += len(changes)


def _changing(source: Import, lines: Iterable[Line], known: dict[str, Order], tally: Tally) -> Iterator[Line]:
    ids = [order.pk for order in known.values()]
    applied = set(
        AppliedUpdate.objects.filter(order__in=ids, md5=source.md5).values_list("order_id", flat=True)
    )
    paying = set(
        Payment.objects.filter(order__in=ids, status=PaymentStatus.PROCESSING).values_list(
            "order_id", flat=True
        )
    )
    for line in lines:
        order = known.get(line.order_no)
        if order is None:
            tally.refuse(line, "order_no", "unknown_order", UNKNOWN_ORDER)
        elif order.pk in applied or bulk.difference(order, _wanted(line)) is None:
            tally.counts["unchanged"] += 1
        elif order.status != OrderStatus.PENDING:
            tally.refuse(line, "order_no", "invalid_transition", WRONG_STATUS)
        elif order.pk in paying:
            tally.refuse(line, "order_no", "operation_in_progress", BEING_PAID)
        elif len(order.lines.all()) != 1:
            tally.refuse(line, "order_no", "several_lines", SEVERAL_LINES)
        else:
            yield line


def _changed_alone(source: Import, change: tuple[Line, Order], tally: Tally, now: datetime) -> bool:
    try:
        _change(source, [change], now)
    except InsufficientStock:
        tally.refuse(change[0], "quantity", InsufficientStock.code, INSUFFICIENT)
        return False
    return True


def _change(source: Import, changes: Sequence[tuple[Line, Order]], now: datetime) -> None:
    bulk.correct_orders(changes=[(order, _wanted(line)) for line, order in changes], now=now)
    AppliedUpdate.objects.bulk_create(AppliedUpdate(order=order, md5=source.md5) for _line, order in changes)


def _wanted(line: Line) -> Wanted:
    return Wanted(
        client_order_no=line.order_no,
        customer_phone=line.customer_phone,
        sku=line.sku,
        quantity=line.quantity,
        price_minor=line.unit_price_minor,
        currency=CURRENCY,
        order_date=line.order_date,
        remark=line.remark,
    )


Handler = Callable[[Import, Iterable[Line], dict[str, Order], Tally, datetime], None]

HANDLERS: Final[dict[Mode, Handler]] = {
    Mode.BATCH: _add,
    Mode.INCREMENTAL: _add,
    Mode.UPDATE: _correct,
}
