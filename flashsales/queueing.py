"""Tickets on their way to an order: one message each, and another one where that was lost."""

from datetime import datetime
from typing import Final

from django.conf import settings
from django.db import transaction

from idempotency.outbox import publish

from .models import Ticket

ADMITTED: Final = "flashsales.admitted"
"""The topic that tells of a ticket which waits for its order."""

BATCH: Final = 1000
"""Tickets that are announced again at a time; the next run has the others."""


def announce(ticket: Ticket, *, using: str | None = None) -> None:
    """Publish that a ticket waits for its order, in the caller's transaction."""
    publish(ADMITTED, {"ticket": str(ticket.number)}, using=using)


def announce_late(*, now: datetime) -> int:
    """Announce tickets again that have waited for ``FLASH_QUEUE_PATIENCE``: their message may be lost.

    Two messages of a ticket make one order.

    :returns: how many.
    """
    before = now - settings.FLASH_QUEUE_PATIENCE
    late = Ticket.objects.waiting_since(before).order_by("pk")[:BATCH]
    return sum(_announce_again(ticket, before=before, now=now) for ticket in list(late))


@transaction.atomic
def _announce_again(ticket: Ticket, *, before: datetime, now: datetime) -> bool:
    if not Ticket.objects.waiting_since(before).filter(pk=ticket.pk).update(queued_at=now):
        return False
    announce(ticket)
    return True
