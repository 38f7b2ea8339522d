"""Make the gate agree with the database. Safe to run twice, at once, and while everybody buys."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from . import gate
from .models import FlashSale, Ticket


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was found of one sale."""

    sku: str
    units: int
    sold: int

    before: int | None
    """Units that the gate would have let in; ``None`` when it did not know."""

    after: int | None
    """The same now. Fewer than ``units - sold`` where requests are at work."""


def reconcile(*, now: datetime) -> Iterator[Finding]:
    """Load the gate of each sale that has not ended."""
    for sale in FlashSale.objects.not_ended(now=now).order_by("pk"):
        if FlashSale.objects.current(sku=sale.sku, now=now) != sale:
            continue  # the one after the next
        before = gate.left(sale.sku)
        after = reload(sale)
        sale.refresh_from_db(fields=["sold"])
        yield Finding(sku=sale.sku, units=sale.units, sold=sale.sold, before=before, after=after)


def reload(sale: FlashSale) -> int | None:
    """Load a gate from the tickets, outside any transaction; return the units left, where it answers.

    Whoever buys meanwhile is not forgotten: the gate keeps what was written since it was told to begin.
    """
    since = gate.begin(sale)
    if since is None:
        return None
    return gate.load(sale, since=since, marks=Ticket.objects.filter(sale=sale).marks())


def refresh(sku: str, *, at_once: bool = False) -> None:
    """Load the gate of an article's sale; unless ``at_once``, one request of many does it."""
    if not gate.is_on() or not (at_once or gate.may_refresh(sku)):
        return
    now = timezone.now()
    if sale := FlashSale.objects.not_ended(now=now).filter(sku=sku).order_by("starts_at").first():
        reload(sale)
