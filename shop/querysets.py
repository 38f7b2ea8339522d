"""Reading after a lost race."""

from typing import TypeVar

from django.db import models, transaction

_Model = TypeVar("_Model", bound=models.Model)


def first_seen(rows: models.QuerySet[_Model]) -> _Model | None:
    """Return the row that an insert has just run into, or ``None``.

    A plain read misses it in the snapshot of MySQL's REPEATABLE READ; a locking read finds it there, but
    rivals who all lock can deadlock, so it comes second.
    """
    if row := rows.first():
        return row
    with transaction.atomic(using=rows.db, savepoint=False):
        return rows.select_for_update().first()
