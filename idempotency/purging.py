"""Delete what has expired, without getting in the way of a claim."""

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from . import engine
from .models import IdempotencyRecord, RecordQuerySet
from .policies import Policy

BATCH: Final = 500
"""Records a transaction: their rows are locked for some ten milliseconds."""

LARGEST_BATCH: Final = 10_000
"""Each record is a parameter of the statement, and SQLite takes 32,766 of them."""

PAUSE: Final = timedelta(milliseconds=100)
"""SQLite's waiting writers look again after at most this long, so each gets its turn between two batches."""


def purge(*, using: str | None = None, batch_size: int = BATCH, limit: int | None = None) -> int:
    """Delete expired records, and return how many.

    See :func:`batches`, which this runs to its end.
    """
    return sum(batches(using=using, batch_size=batch_size, limit=limit))


def batches(*, using: str | None = None, batch_size: int = BATCH, limit: int | None = None) -> Iterator[int]:
    """Delete expired records batch by batch, and yield the size of each.

    A record is deleted only while it is completed and expired by the database's clock: one that is taken
    over in this moment stays. Each batch is a transaction of its own and waits for nobody: records that
    a rival holds are left for the next purge. The end is reached when a batch finds nothing to delete.

    ``using`` is the alias of a database (the records' own by default); at most ``limit`` records are deleted.

    :raises ValueError: when ``batch_size`` is not from 1 to 10,000, or ``limit`` is below zero.
    """
    if not 1 <= batch_size <= LARGEST_BATCH:
        raise ValueError(f"batch_size goes from 1 to {LARGEST_BATCH}, not {batch_size}.")
    if limit is not None and limit < 0:
        raise ValueError("limit cannot be negative; None deletes all that has expired.")
    return _batches(connections[using or engine.database(Policy())], batch_size, limit)


def expired(*, using: str | None = None) -> RecordQuerySet:
    """Return the records that a purge would delete now."""
    return IdempotencyRecord.objects.using(using or engine.database(Policy())).expired()


def _batches(connection: BaseDatabaseWrapper, size: int, limit: int | None) -> Iterator[int]:
    left = limit
    while left is None or left > 0:
        ids = _read(connection.alias, size if left is None else min(size, left))
        deleted = _delete(connection, ids)
        if not deleted:
            return
        yield deleted
        left = None if left is None else left - deleted
        if connection.vendor == "sqlite":
            time.sleep(PAUSE.total_seconds())


def _read(alias: str, size: int) -> list[UUID]:
    """Read without locks: on MySQL a locking read by ``expires_at`` locks gaps that claims insert into."""
    return list(expired(using=alias).order_by("expires_at").values_list("pk", flat=True)[:size])


def _delete(connection: BaseDatabaseWrapper, ids: list[UUID]) -> int:
    if not ids:
        return 0
    records = expired(using=connection.alias)
    _without_gap_locks(connection)
    with transaction.atomic(connection.alias):
        listed = records.filter(pk__in=ids)
        free = list(listed.select_for_update(skip_locked=True).values_list("pk", flat=True))
        # the WHERE clause is the judge where nothing was locked; and it is one statement, whoever
        # listens to deletions: the bodies are never loaded
        return records.filter(pk__in=free)._raw_delete(connection.alias)


def _without_gap_locks(connection: BaseDatabaseWrapper) -> None:
    """Have the next transaction lock rows only, whatever isolation the project has chosen."""
    if connection.vendor == "mysql" and not connection.in_atomic_block:
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
