"""How each database claims: the only file that knows SQL dialects.

A claim is made and completed inside the transaction that holds the handler's own writes, so it lives and
dies with them. The primary key is the judge; the lock before it only saves a rival the work.

- PostgreSQL: an advisory lock, a look, and the finished record inserted last.
- MariaDB, MySQL: an unfinished record inserted first, whose row lock keeps rivals out, and finished last.
- SQLite: its one writer is the lock; a look, and the finished record inserted last.
"""

import json
from datetime import timedelta
from functools import cache, cached_property
from typing import Any, Final

from django.db import IntegrityError, OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from .dialects import Dialect, code
from .models import State
from .rows import TABLE, Busy, Found, Row
from .values import Operation, Outcome

_IDENTITY: Final = ("id", "operation", "scope", "key", "label")
_FIRST: Final = ("fingerprint", "state", "created_at")
_LAST: Final = ("status", "headers", "body", "completed_at", "expires_at")


class AtomicClaim(Row):
    """The right to run one operation, within the caller's open transaction."""

    expired = False
    """Whether an expired outcome stood in the way."""

    def attempt(self, *, wait: timedelta) -> Found | None:
        """Return the record that is there, or ``None`` for the right to run.

        :raises Busy: when a rival holds the claim, after at most ``wait``.
        """
        raise NotImplementedError

    def complete(self, outcome: Outcome, *, retention: timedelta | None) -> bool:
        """Write the outcome; ``False`` when a rival's record came first and all must be rolled back."""
        raise NotImplementedError

    def peek(self) -> Found | None:
        """Return the record that is there, without a claim and outside any transaction."""
        try:
            return self._found(self._look())
        except Busy:
            return None

    def _look(self, *, suffix: str = "") -> tuple[Any, ...] | None:
        return self.fetch(_look_sql(self.dialect) + suffix, [self.id])

    def _found(self, row: tuple[Any, ...] | None) -> Found | None:
        if row is None:
            return None
        fingerprint, state, status, headers, body, left, self.expired = row
        if self.expired:
            return None  # as good as none: complete() takes it over
        if state != State.COMPLETED:
            raise Busy
        return self.found(fingerprint, status, headers, body, left)

    def _insert(self, outcome: Outcome, retention: timedelta | None) -> bool:
        params = [
            *self.identity,
            self.operation.fingerprint,
            State.COMPLETED.value,
            outcome.status,
            json.dumps(outcome.headers),
            outcome.body,
            self.dialect.parameter(retention),
        ]
        return self.execute(_insert_sql(self.dialect), params) == 1

    @cached_property
    def connection(self) -> BaseDatabaseWrapper:
        """An atomic claim never leaves its thread."""
        return connections[self.alias]


@cache
def _look_sql(dialect: Dialect) -> str:
    names = dialect.names("fingerprint", "state", "status", "headers", "body")
    expired = f"COALESCE(expires_at <= {dialect.clock}, FALSE)"
    return f"SELECT {names}, {dialect.left}, {expired} FROM {TABLE} WHERE id = %s"


@cache
def _insert_sql(dialect: Dialect) -> str:
    """Insert the finished record, or take over an expired one: the WHERE clause is the judge."""
    names = dialect.names(*_IDENTITY, *_FIRST, *_LAST)
    values = ["%s"] * 7 + [dialect.clock] + ["%s"] * 3 + [dialect.clock, dialect.later]
    updates = ", ".join(f"{name} = excluded.{name}" for name in (*_FIRST, *_LAST))
    return (
        f"INSERT INTO {TABLE} AS r ({names}) VALUES ({', '.join(values)}) "
        f"ON CONFLICT (id) DO UPDATE SET {updates} WHERE r.expires_at <= {dialect.clock}"
    )


class PostgreSQLClaim(AtomicClaim):
    """Lock and look are two statements of one message: the look's snapshot must be younger than the lock.

    In one statement they would share a snapshot, and the handler would run again for an outcome that was
    committed in between.
    """

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
        with self.cursor() as cursor:
            if not self._takes_two_statements:
                cursor.execute(lock, [self._lock_id])
                return cursor.fetchone()[0], self._look()
            cursor.execute(f"{lock}; {_look_sql(self.dialect)}", [self._lock_id, self.id])
            locked = cursor.fetchone()[0]
            cursor.nextset()
            return locked, cursor.fetchone()

    def _wait(self, wait: timedelta) -> None:
        milliseconds = max(1, wait // timedelta(milliseconds=1))
        try:
            with transaction.atomic(self.alias):  # a savepoint: a wait in vain leaves the rest usable
                before = self._setting("SELECT current_setting('lock_timeout')")
                self._setting("SELECT set_config('lock_timeout', %s, TRUE)", f"{milliseconds}ms")
                self.execute("SELECT pg_advisory_xact_lock(%s)", [self._lock_id])
                self._setting("SELECT set_config('lock_timeout', %s, TRUE)", before)
        except OperationalError as error:
            if code(error) != "55P03":  # lock_not_available
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


class MySQLClaim(AtomicClaim):
    """A plain INSERT, never IGNORE: a bad value must be loud, and the error tells who won."""

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
            f"UPDATE {TABLE} SET state = %s, status = %s, headers = %s, body = %s, "
            f"completed_at = {self.dialect.clock}, expires_at = {self.dialect.later} "
            "WHERE id = %s AND state = %s"
        )
        params = [State.COMPLETED.value, outcome.status, json.dumps(outcome.headers), outcome.body]
        params += [self.dialect.parameter(retention), self.id, State.IN_PROGRESS.value]
        return self.execute(sql, params) == 1

    def _insert_unfinished(self, wait: timedelta) -> bool:
        columns = (*_IDENTITY, *_FIRST, "headers")
        values = f"{', '.join(['%s'] * 7)}, {self.dialect.clock}, '[]'"
        sql = f"INSERT INTO {TABLE} ({self.dialect.names(*columns)}) VALUES ({values})"
        params = [*self.identity, self.operation.fingerprint, State.IN_PROGRESS.value]
        try:
            return self.execute(self._bounded(sql, wait), params) == 1
        except IntegrityError as error:
            if code(error) != 1062:  # duplicate entry
                raise
            return False
        except OperationalError as error:
            if code(error) != 1205 or self._is_expired():  # lock wait timeout
                raise  # a purge or a taker holds the expired row for a moment: a conflict, to be run again
            raise Busy from error  # a rival that has not committed

    def _is_expired(self) -> bool:
        row = self._look()  # without a lock: what is committed
        return row is not None and bool(row[-1])

    def _take_over(self) -> None:
        """Make the expired row ours.

        Rivals that hold its shared lock too make this a conflict. The short wait has the server end it as
        the deadlock that it is, in favour of one; without a wait each of them would give way to the others.
        """
        sql = (
            f"UPDATE {TABLE} SET fingerprint = %s, state = %s, created_at = {self.dialect.clock}, "
            "status = NULL, headers = '[]', body = NULL, completed_at = NULL, expires_at = NULL "
            f"WHERE id = %s AND expires_at <= {self.dialect.clock}"
        )
        params = [self.operation.fingerprint, State.IN_PROGRESS.value, self.id]
        if self.execute(self._bounded(sql, timedelta(seconds=1)), params) != 1:
            raise Busy

    def _bounded(self, sql: str, wait: timedelta) -> str:
        """Bound the wait for a rival's row lock. MySQL cannot: there a rival waits and then replays."""
        if not self.connection.mysql_is_mariadb:  # type: ignore[attr-defined]
            return sql
        seconds = -(-wait // timedelta(seconds=1))
        return f"SET STATEMENT innodb_lock_wait_timeout={seconds} FOR {sql}"


class SQLiteClaim(AtomicClaim):
    """``transaction_mode=IMMEDIATE`` makes rivals wait at BEGIN; a system check asks for it."""

    def attempt(self, *, wait: timedelta) -> Found | None:
        return self._found(self._look())

    def complete(self, outcome: Outcome, *, retention: timedelta | None) -> bool:
        return self._insert(outcome, retention)


_CLAIMS: Final[dict[str, type[AtomicClaim]]] = {
    "postgresql": PostgreSQLClaim,
    "mysql": MySQLClaim,
    "sqlite": SQLiteClaim,
}


def claim(alias: str, operation: Operation) -> AtomicClaim:
    """Return the claim of this operation on this database. Nothing is sent yet."""
    return _CLAIMS[connections[alias].vendor](alias, operation)
