"""More buyers than pieces, and a file that is uploaded twice."""

import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from django.utils.translation import gettext as _

from demo.client import Answer
from demo.data import offer
from demo.walk import SKU, Check, Step, Walk, on_hand
from orders.models import Order
from stock.models import StockMovement

SCARCE = "WALK-200"
"""An article that is nearly sold out."""

PIECES = 5


def more_buyers_than_pieces(walk: Walk) -> Iterator[Step]:
    """Twenty buyers want the last five pieces."""
    offer(SCARCE, stock=PIECES)
    numbers = [f"W-{uuid.uuid4().hex[:12]}" for _number in range(20)]
    answers = _deduct(walk, numbers)
    answered = [
        Check(_("201 taken"), sum(a.status == 201 for a in answers), PIECES),
        Check(_("409 insufficient stock"), Counter(a.code for a in answers)["insufficient_stock"], 15),
    ]
    yield Step(_("the last five pieces, by 20 buyers at once"), answered, _taken(numbers))
    winners = [number for number, answer in zip(numbers, answers, strict=True) if answer.status == 201]
    repeats = _deduct(walk, winners)
    answered = [Check(_("200 isDuplicate"), sum(a.is_duplicate for a in repeats), PIECES)]
    yield Step(_("the five buyers again"), answered, _taken(numbers))


def file_twice(walk: Walk) -> Iterator[Step]:
    """A clerk uploads a file, is not sure, and uploads it again."""
    numbers, stock = [f"F-{uuid.uuid4().hex[:12]}" for _number in range(3)], on_hand()
    lines = [f"{number},13800000001,{SKU},1,19.90,2024-11-01" for number in numbers]
    header = "order_no,customer_phone,sku,quantity,unit_price,order_date"
    file = "\n".join([header, *lines]).encode()
    for sent, status in ((_("a file with three orders"), 201), (_("the same file again"), 200)):
        answered = [Check(_("status"), walk.client.upload(file).status, status)]
        made = Order.objects.filter(client_order_no__in=numbers).count()
        yield Step(
            sent, answered, [Check(_("orders"), made, 3), Check(_("stock taken"), stock - on_hand(), 3)]
        )


def _deduct(walk: Walk, numbers: list[str]) -> list[Answer]:
    with ThreadPoolExecutor(len(numbers)) as pool:
        return list(pool.map(lambda number: walk.client.deduct(SCARCE, number), numbers))


def _taken(numbers: list[str]) -> list[Check]:
    references = [f"deduction:{number}" for number in numbers]
    return [
        Check(_("pieces taken"), StockMovement.objects.filter(reference__in=references).count(), PIECES),
        Check(_("pieces left"), on_hand(SCARCE), 0),
    ]
