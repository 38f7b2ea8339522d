"""Many orders' pieces at once: one ledger row for each, one conditional update for each article."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import F

from .exceptions import InsufficientStock
from .models import Kind, StockItem, StockMovement


@dataclass(frozen=True, kw_only=True, slots=True)
class Pieces:
    """So many pieces of one article, for one reference."""

    reference: str
    sku: str
    quantity: int


@transaction.atomic
def move(*, taken: Sequence[Pieces], given_back: Sequence[Pieces] = (), now: datetime) -> None:
    """Take and give back, all of it or nothing; each reference moves an article once in each direction.

    What is on hand changes by the difference, always in the order of the skus: rivals never wait for each
    other in a circle.

    :raises InsufficientStock: when an article runs short, or is unknown.
    :raises IntegrityError: when a reference has moved an article in that direction before.
    """
    StockMovement.objects.bulk_create(
        [*_rows(taken, Kind.DEDUCTED, now), *_rows(given_back, Kind.RESTORED, now)]
    )
    change = _sums(given_back)
    change.subtract(_sums(taken))
    for sku in sorted(sku for sku, quantity in change.items() if quantity):
        _change(sku, change[sku])


def levels(*, skus: Collection[str]) -> dict[str, int]:
    """Return how many of each article are on hand, and keep them so until the caller's commit."""
    rows = StockItem.objects.select_for_update().filter(sku__in=skus).order_by("sku")
    return dict(rows.values_list("sku", "on_hand"))


def _rows(pieces: Iterable[Pieces], kind: Kind, now: datetime) -> Iterable[StockMovement]:
    return (
        StockMovement(
            reference=each.reference, sku=each.sku, kind=kind, quantity=each.quantity, created_at=now
        )
        for each in pieces
    )


def _sums(pieces: Iterable[Pieces]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for each in pieces:
        sums[each.sku] += each.quantity
    return sums


def _change(sku: str, difference: int) -> None:
    # The WHERE clause decides: what is on hand never falls below nothing.
    rows = StockItem.objects.filter(sku=sku, on_hand__gte=-difference)
    if not rows.update(on_hand=F("on_hand") + difference, version=F("version") + 1):
        raise InsufficientStock(sku)
