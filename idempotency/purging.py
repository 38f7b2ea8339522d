"""Delete what has expired, without getting in the way of a claim or a relay."""

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from django.db import connections, transaction
from django.db.models import QuerySet

from . import conf, dialects, engine
from .models import IdempotencyRecord, OutboxMessage, OutboxQuerySet, RecordQuerySet
from .policies import Policy

BATCH: Final = 500
"""Rows a transaction: they are locked for some ten milliseconds."""

LARGEST_BATCH: Final = 10_000
"""Each row is a parameter of the statement, and SQLite takes 32,766 of them."""

PAUSE: Final = timedelta(milliseconds=100)
"""SQLite's waiting writers look again after at most this long, so each gets its turn between two batches."""


def purge(*, using: str | None = None, batch_size: int = BATCH, limit: int | None = None) -> int:
    """Delete expired records, then messages past their retention; return how many in all.

    See :func:`batches` and :func:`message_batches`, which this runs to their end.
    """
    records = sum(batches(using=using, batch_size=batch_size, limit=limit))
    left = None if limit is None else limit - records
    return records + sum(message_batches(using=using, batch_size=batch_size, limit=left))


def batches(*, using: str | None = None, batch_size: int = BATCH, limit: int | None = None) -> Iterator[int]:
    """Delete expired records batch by batch, and yield the size of each.

    A record is deleted only while it is completed and expired by the database's clock: one that is taken
    over in this moment stays. Each batch is a transaction of its own and waits for nobody: records that
    a rival holds are left for the next purge. The end is reached when a batch finds nothing to delete.

    ``using`` is the alias of a database (the records' own by default); at most ``limit`` records are deleted.

    :raises ValueError: when ``batch_size`` is not from 1 to 10,000, or ``limit`` is below zero.
    """
    return _batches(expired(using=using), "expires_at", batch_size, limit)


def message_batches(
    *, using: str | None = None, batch_size: int = BATCH, limit: int | None = None
) -> Iterator[int]:
    """Delete messages that were sent or dropped ``IDEMPOTENCY_OUTBOX_RETENTION`` ago.

    It does so as :func:`batches` does. Messages to be sent and dead letters stay, however old they are.

    :raises ValueError: as :func:`batches` does.
    """
    return _batches(ended(using=using), "ended_at", batch_size, limit)


def expired(*, using: str | None = None) -> RecordQuerySet:
    """Return the records that a purge would delete now."""
    return IdempotencyRecord.objects.using(using or engine.database(Policy())).expired()


def ended(*, using: str | None = None) -> OutboxQuerySet:
    """Return the messages that a purge would delete now."""
    messages = OutboxMessage.objects.using(using or engine.database(Policy()))
    retention = conf.get("OUTBOX_RETENTION")
    return messages.none() if retention is None else messages.past_retention(retention)


def _batches(rows: QuerySet[Any], age: str, size: int, limit: int | None) -> Iterator[int]:
    if not 1 <= size <= LARGEST_BATCH:
        raise ValueError(f"batch_size goes from 1 to {LARGEST_BATCH}, not {size}.")
    if limit is not None and limit < 0:
        raise ValueError("limit cannot be negative; None deletes all that has expired.")
    return _delete_batches(rows, age, size, limit)


def _delete_batches(rows: QuerySet[Any], age: str, size: int, limit: int | None) -> Iterator[int]:
    left = limit
    while left is None or left > 0:
        ids = _read(rows, age, size if left is None else min(size, left))
        deleted = _delete(rows, ids)
        if not deleted:
            return
        yield deleted
        left = None if left is None else left - deleted
        if connections[rows.db].vendor == "sqlite":
            time.sleep(PAUSE.total_seconds())


def _read(rows: QuerySet[Any], age: str, size: int) -> list[Any]:
    """Read without locks: on MySQL a locking read by age locks gaps that claims insert into."""
    return list(rows.order_by(age).values_list("pk", flat=True)[:size])


def _delete(rows: QuerySet[Any], ids: list[Any]) -> int:
    if not ids:
        return 0
    dialects.without_gap_locks(connections[rows.db])
    with transaction.atomic(rows.db):
        listed = rows.filter(pk__in=ids)
        free = list(listed.select_for_update(skip_locked=True).values_list("pk", flat=True))
        # the WHERE clause is the judge where nothing was locked; and it is one statement, whoever
        # listens to deletions: the bodies are never loaded
        deleted: int = rows.filter(pk__in=free)._raw_delete(rows.db)
        return deleted
