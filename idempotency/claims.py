"""How each database claims: the only file that knows SQL dialects.

A claim is made and completed inside the transaction that holds the handler's own writes, so it lives and
dies with them. The primary key is the judge; the lock before it only saves a rival the work.

- PostgreSQL: an advisory lock, a look, and the finished record inserted last.
- MariaDB, MySQL: an unfinished record inserted first, whose row lock keeps rivals out, and finished last.
- SQLite: its one writer is the lock; a look, and the finished record inserted last.
"""

import json
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, ClassVar, Final

from django.db import IntegrityError, OperationalError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from .models import IdempotencyRecord, State
from .values import Operation, Outcome

READABLE: Final = 255
"""Characters of a column for people."""

_IDENTITY: Final = ("id", "operation", "scope", "key", "label")
_FIRST: Final = ("fingerprint", "state", "created_at")
_LAST: Final = ("status", "headers", "body", "completed_at", "expires_at")


@dataclass(frozen=True)
class Found:
    """A record that answers a repeat."""

    fingerprint: bytes | None
    outcome: Outcome


class Busy(Exception):
    """A rival is at work on the same operation."""


class Claim:
    """The right to run one operation, within the caller's open transaction."""

    quote: ClassVar[str] = '"'
    """Stands around the name of a table or column."""
    clock: ClassVar[str]
    """The database's own time: application clocks differ."""
    expiry: ClassVar[str]
    """``clock`` plus the retention parameter, NULL when that is NULL."""

    def __init__(self, connection: BaseDatabaseWrapper, operation: Operation) -> None:
        self.connection = connection
        self.operation = operation
        self.expired = False  # whether an expired record stood in the way

    def attempt(self, *, wait: timedelta) -> Found | None:
        """Return the record that is there, or ``None`` for the right to run.

        :raises Busy: when a rival holds the claim, after at most ``wait``.
        """
        raise NotImplementedError

    def complete(self, outcome: Outcome, *, retention: timedelta | None) -> bool:
        """Write the outcome; ``False`` when a rival's record came first and all must be rolled back."""
        raise NotImplementedError

    def _execute(self, sql: str, params: list[Any]) -> int:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, params)
            return cursor.rowcount  # type: ignore[no-any-return]

    def _look(self, *, suffix: str = "") -> tuple[Any, ...] | None:
        with self.connection.cursor() as cursor:
            cursor.execute(self._look_sql(suffix=suffix), [self._id])
            return cursor.fetchone()  # type: ignore[no-any-return]

    @classmethod
    @cache
    def _look_sql(cls, *, suffix: str = "") -> str:
        names = cls._names("fingerprint", "state", "status", "headers", "body")
        expired = f"COALESCE(expires_at <= {cls.clock}, FALSE)"
        return f"SELECT {names}, {expired} FROM {cls._table()} WHERE id = %s{suffix}"

    def _found(self, row: tuple[Any, ...] | None) -> Found | None:
        if row is None:
            return None
        fingerprint, state, status, headers, body, self.expired = row
        if self.expired:
            return None  # as good as none: complete() takes it over
        if state != State.COMPLETED:
            raise Busy
        kept = tuple((name, value) for name, value in json.loads(headers))
        return Found(_bytes(fingerprint), Outcome(status=status, headers=kept, body=_bytes(body)))

    @classmethod
    @cache
    def _insert_sql(cls) -> str:
        """Insert the finished record, or take over an expired one: the WHERE clause is the judge."""
        columns = (*_IDENTITY, *_FIRST, *_LAST)
        values = ["%s"] * 7 + [cls.clock] + ["%s"] * 3 + [cls.clock, cls.expiry]
        updates = ", ".join(f"{name} = excluded.{name}" for name in (*_FIRST, *_LAST))
        return (
            f"INSERT INTO {cls._table()} AS r ({cls._names(*columns)}) VALUES ({', '.join(values)}) "
            f"ON CONFLICT (id) DO UPDATE SET {updates} WHERE r.expires_at <= {cls.clock}"
        )

    def _insert(self, outcome: Outcome, retention: timedelta | None) -> bool:
        params = [
            *self._identity,
            self.operation.fingerprint,
            State.COMPLETED.value,
            outcome.status,
            json.dumps(outcome.headers),
            outcome.body,
            self._span(retention),
        ]
        return self._execute(self._insert_sql(), params) == 1

    @property
    def _id(self) -> Any:
        native = self.connection.features.has_native_uuid_field
        return str(self.operation.id) if native else self.operation.id.hex

    @property
    def _identity(self) -> list[Any]:
        operation = self.operation
        texts = (operation.name, operation.scope, operation.key, operation.label or operation.key)
        return [self._id, *map(_readable, texts)]

    @classmethod
    def _table(cls) -> str:
        return cls._names(IdempotencyRecord._meta.db_table)

    @classmethod
    def _names(cls, *names: str) -> str:
        return ", ".join(f"{cls.quote}{name}{cls.quote}" for name in names)

    def _span(self, span: timedelta | None) -> Any:
        return span


class PostgreSQLClaim(Claim):
    """Lock and look are two statements of one message: the look's snapshot must be younger than the lock.

    In one statement they would share a snapshot, and the handler would run again for an outcome that was
    committed in between.
    """

    clock = "clock_timestamp()"
    expiry = "clock_timestamp() + %s::interval"

    def attempt(self, *, wait: timedelta) -> Found | None:
        locked, row = self._lock_and_look()
        found = self._found(row)
        if found or locked:
            return found
        if not wait:
            raise Busy
        self._wait(wait)
        return self._found(self._look())

    def complete(self, outcome: Outcome, *, retention: timedelta | None) -> bool:
        return self._insert(outcome, retention)

    def _lock_and_look(self) -> tuple[bool, tuple[Any, ...] | None]:
        lock = "SELECT pg_try_advisory_xact_lock(%s)"
        with self.connection.cursor() as cursor:
            if not self._takes_two_statements:
                cursor.execute(lock, [self._lock_id])
                return cursor.fetchone()[0], self._look()
            cursor.execute(f"{lock}; {self._look_sql()}", [self._lock_id, self._id])
            locked = cursor.fetchone()[0]
            cursor.nextset()
            return locked, cursor.fetchone()

    def _wait(self, wait: timedelta) -> None:
        milliseconds = max(1, wait // timedelta(milliseconds=1))
        try:
            with transaction.atomic(
                self.connection.alias
            ):  # a savepoint: a wait in vain leaves the rest usable
                before = self._setting("SELECT current_setting('lock_timeout')")
                self._setting("SELECT set_config('lock_timeout', %s, TRUE)", f"{milliseconds}ms")
                self._execute("SELECT pg_advisory_xact_lock(%s)", [self._lock_id])
                self._setting("SELECT set_config('lock_timeout', %s, TRUE)", before)
        except OperationalError as error:
            if _code(error) != "55P03":  # lock_not_available
                raise
            raise Busy from error

    def _setting(self, sql: str, *params: str) -> str:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, params)
            return cursor.fetchone()[0]  # type: ignore[no-any-return]

    @property
    def _lock_id(self) -> int:
        return int.from_bytes(self.operation.id.bytes[:8], "big", signed=True)

    @property
    def _takes_two_statements(self) -> bool:
        """psycopg 3 with parameters bound by the client, which is Django's default."""
        from django.db.backends.postgresql.psycopg_any import is_psycopg3

        return is_psycopg3 and not self.connection.settings_dict["OPTIONS"].get("server_side_binding")


class MySQLClaim(Claim):
    """A plain INSERT, never IGNORE: a bad value must be loud, and the error tells who won."""

    quote = "`"
    clock = "UTC_TIMESTAMP(6)"
    expiry = "UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND"

    def attempt(self, *, wait: timedelta) -> Found | None:
        if self._insert_unfinished(wait):
            return None
        # the refused INSERT holds the row's shared lock: no purge can take the row away before this look,
        # and the look's own lock sees past the snapshot of REPEATABLE READ
        if (row := self._look(suffix=" LOCK IN SHARE MODE")) is None:
            raise Busy  # gone all the same: never run without a claim
        found = self._found(row)
        if self.expired:
            self._take_over()
        return found

    def complete(self, outcome: Outcome, *, retention: timedelta | None) -> bool:
        sql = (
            f"UPDATE {self._table()} SET state = %s, status = %s, headers = %s, body = %s, "
            f"completed_at = {self.clock}, expires_at = {self.expiry} WHERE id = %s AND state = %s"
        )
        params = [State.COMPLETED.value, outcome.status, json.dumps(outcome.headers), outcome.body]
        params += [self._span(retention), self._id, State.IN_PROGRESS.value]
        return self._execute(sql, params) == 1

    def _insert_unfinished(self, wait: timedelta) -> bool:
        columns = (*_IDENTITY, *_FIRST, "headers")
        values = f"{', '.join(['%s'] * 7)}, {self.clock}, '[]'"
        sql = f"INSERT INTO {self._table()} ({self._names(*columns)}) VALUES ({values})"
        params = [*self._identity, self.operation.fingerprint, State.IN_PROGRESS.value]
        try:
            return self._execute(self._bounded(sql, wait), params) == 1
        except IntegrityError as error:
            if _code(error) != 1062:  # duplicate entry
                raise
            return False
        except OperationalError as error:
            if _code(error) != 1205:  # lock wait timeout: the rival has not committed
                raise
            raise Busy from error

    def _take_over(self) -> None:
        """Make the expired row ours. Rivals that hold its shared lock too make this a conflict."""
        sql = (
            f"UPDATE {self._table()} SET fingerprint = %s, state = %s, created_at = {self.clock}, "
            f"status = NULL, headers = '[]', body = NULL, completed_at = NULL, expires_at = NULL "
            f"WHERE id = %s AND expires_at <= {self.clock}"
        )
        params = [self.operation.fingerprint, State.IN_PROGRESS.value, self._id]
        if self._execute(self._bounded(sql, timedelta(0)), params) != 1:
            raise Busy

    def _bounded(self, sql: str, wait: timedelta) -> str:
        """Bound the wait for a rival's row lock. MySQL cannot: there a rival waits and then replays."""
        if not self.connection.mysql_is_mariadb:  # type: ignore[attr-defined]
            return sql
        seconds = -(-wait // timedelta(seconds=1))
        return f"SET STATEMENT innodb_lock_wait_timeout={seconds} FOR {sql}"

    def _span(self, span: timedelta | None) -> int | None:
        return None if span is None else span // timedelta(microseconds=1)


class SQLiteClaim(Claim):
    """``transaction_mode=IMMEDIATE`` makes rivals wait at BEGIN; a system check asks for it."""

    clock = "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now')"
    expiry = "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', %s)"

    def attempt(self, *, wait: timedelta) -> Found | None:
        return self._found(self._look())

    def complete(self, outcome: Outcome, *, retention: timedelta | None) -> bool:
        return self._insert(outcome, retention)

    def _span(self, span: timedelta | None) -> str | None:
        return None if span is None else f"{span.total_seconds():+.6f} seconds"


_CLAIMS: Final[dict[str, type[Claim]]] = {
    "postgresql": PostgreSQLClaim,
    "mysql": MySQLClaim,
    "sqlite": SQLiteClaim,
}

VENDORS: Final = frozenset(_CLAIMS)


def claim(connection: BaseDatabaseWrapper, operation: Operation) -> Claim:
    """Return the claim of this operation on this database. Nothing is sent yet."""
    return _CLAIMS[connection.vendor](connection, operation)


def is_conflict(error: BaseException) -> bool:
    """Tell whether a transaction failed only for its rivals' sake, and may succeed when run again."""
    return _code(error) in _CONFLICTS


_CONFLICTS: Final = frozenset(
    {"40001", "40P01"}  # PostgreSQL: serialization failure, deadlock
    | {1213, 1205, 1020}  # MySQL: deadlock, lock wait timeout, changed since it was read
    | {"SQLITE_BUSY", "SQLITE_BUSY_SNAPSHOT"}
)


def _code(error: BaseException) -> str | int | None:
    cause = error.__cause__ or error
    if cause.args and isinstance(cause.args[0], int):  # MySQL's own number; its SQLSTATE is too coarse
        return cause.args[0]
    for name in ("sqlstate", "pgcode", "sqlite_errorname"):
        if code := getattr(cause, name, None):
            return code  # type: ignore[no-any-return]
    return None


def _readable(text: str) -> str:
    """Cut and clean a text for people; no decision is made on it."""
    text = text[:READABLE]
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)
