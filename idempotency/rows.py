"""A record's row, for the statements that the ORM would make slow or could not say."""

import json
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from .dialects import Dialect, dialect
from .models import IdempotencyRecord
from .values import Operation, Outcome

TABLE: Final = IdempotencyRecord._meta.db_table

READABLE: Final = 255
"""Characters of a column for people."""


@dataclass(frozen=True)
class Found:
    """A record that answers a repeat."""

    fingerprint: bytes | None
    outcome: Outcome

    until: float | None = None
    """When it expires, by this process's monotonic clock; ``None``: never."""

    @classmethod
    def of(cls, operation: Operation, outcome: Outcome, *, retention: timedelta | None) -> "Found":
        """Return an outcome as repeats will find it.

        Make it before the outcome is written: what is found must not seem to live longer than the record.
        """
        until = None if retention is None else time.monotonic() + retention.total_seconds()
        return cls(operation.fingerprint, outcome, until)


class Busy(Exception):
    """A rival is at work on the same operation."""


class Row:
    """The row of one operation in one database."""

    def __init__(self, alias: str, operation: Operation) -> None:
        self.alias = alias
        self.operation = operation
        self.asked_at = time.monotonic()

    @property
    def connection(self) -> BaseDatabaseWrapper:
        """This thread's connection."""
        return connections[self.alias]

    @property
    def dialect(self) -> Dialect:
        return dialect(self.connection)

    @property
    def id(self) -> Any:
        native = self.connection.features.has_native_uuid_field
        return str(self.operation.id) if native else self.operation.id.hex

    @property
    def identity(self) -> list[Any]:
        """The values of ``id, operation, scope, key, label``."""
        operation = self.operation
        texts = (operation.name, operation.scope, operation.key, operation.label or operation.key)
        return [self.id, *map(_readable, texts)]

    def found(self, fingerprint: Any, status: int | None, headers: str, body: Any, left: Any) -> Found:
        """Make the columns of a completed record an outcome; ``left`` is how many seconds it has."""
        kept = tuple((name, value) for name, value in json.loads(headers))
        outcome = Outcome(status=status, headers=kept, body=as_bytes(body))
        until = None if left is None else self.asked_at + float(left)
        return Found(as_bytes(fingerprint), outcome, until)

    def cursor(self) -> Any:
        """Return a cursor for statements that are sent from now on."""
        self.asked_at = time.monotonic()
        return self.connection.cursor()

    def execute(self, sql: str, params: list[Any]) -> int:
        """Run a statement; return how many rows it met."""
        with self.cursor() as cursor:
            cursor.execute(sql, params)
            return cursor.rowcount  # type: ignore[no-any-return]

    def fetch(self, sql: str, params: list[Any]) -> tuple[Any, ...] | None:
        with self.cursor() as cursor:
            cursor.execute(sql, params)
            return cursor.fetchone()  # type: ignore[no-any-return]


def as_bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def _readable(text: str) -> str:
    """Cut and clean a text for people; no decision is made on it."""
    text = text[:READABLE]
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
