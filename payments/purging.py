"""Forget what providers told about buyers, once nothing depends on it any more."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from .models import Notice

BATCH: Final = 500
"""Rows a statement: they are locked for some milliseconds."""


def purge_contents(*, before: datetime, batch_size: int = BATCH) -> Iterator[int]:
    """Empty the content of notices that were settled before this instant, and yield the size of each batch.

    The row stays, with its numbers, amounts and fate: a repeat is still known. What waits for its order or
    payment is left alone. Each batch is a transaction of its own.
    """
    full = Notice.objects.settled_before(before).exclude(content="").order_by("pk")
    while numbers := list(full.values_list("pk", flat=True)[:batch_size]):
        yield Notice.objects.filter(pk__in=numbers).update(content="")
