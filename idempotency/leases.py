"""A committed claim with an end: the statements behind a leased operation.

Each is a transaction of its own or the guard of one. The token fences off a late owner: whoever writes
says it in the WHERE clause, and one row must answer.
"""

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeVar

from django.db import IntegrityError, transaction

from . import values
from .exceptions import ClaimLost
from .models import State
from .rows import TABLE, Busy, Found, Row, as_bytes
from .values import Outcome

Value = TypeVar("Value")

_COLUMNS: Final = (
    "fingerprint",
    "state",
    "status",
    "headers",
    "body",
    "operation_id",
    "steps",
    "token",
    "attempts",
)


_FIRST: Final = (
    *("id", "operation", "scope", "key", "label"),
    *("fingerprint", "state", "headers", "steps", "attempts"),
    *("operation_id", "token", "created_at", "leased_until"),
)


@dataclass(frozen=True, kw_only=True)
class Taken:
    """The right to run, until the lease ends."""

    token: uuid.UUID
    operation_id: uuid.UUID
    """Names the one intended effect towards the outside: kept by every taker until it is settled."""

    steps: dict[str, Any]
    """What each finished step returned."""

    attempts: int
    """How many have taken it, this one included."""

    expired: bool = False
    """Whether an expired outcome stood in the way."""


class OtherFingerprint(Exception):
    """The unfinished operation was asked for differently."""


class Lease(Row):
    """The row of one leased operation."""

    token: uuid.UUID | None = None

    def take(self, span: timedelta) -> Found | Taken:
        """Return the outcome that is there, or the right to run for ``span``.

        :raises Busy: when a rival's lease has not ended.
        :raises OtherFingerprint: when it has, and the rival was asked for something else.
        """
        for _ in range(3):  # a rival may take it, or give it up, between look and claim
            row = self._look()
            taken = self._insert(span) if row is None else self._answer(row, span)
            if taken is not None:
                return taken
        raise Busy

    def renew(self, span: timedelta) -> None:
        """Start the lease anew; inside a transaction this keeps every taker out until its end.

        :raises ClaimLost: when somebody else has taken over.
        """
        later = self.dialect.later
        self._write(f"leased_until = {later}", [self.dialect.parameter(span)])

    def remember(self, steps: dict[str, Any]) -> None:
        """Keep what the finished steps returned."""
        self._write("steps = %s", [values.dumps(steps)])

    def complete(self, outcome: Outcome, *, retention: timedelta | None) -> None:
        """Keep the outcome and end the claim."""
        clock, later = self.dialect.clock, self.dialect.later
        columns = (
            "state = %s, status = %s, headers = %s, body = %s, steps = NULL, token = NULL, "
            f"leased_until = NULL, completed_at = {clock}, expires_at = {later}"
        )
        kept = [outcome.status, json.dumps(outcome.headers), outcome.body]
        self._write(columns, [State.COMPLETED.value, *kept, self.dialect.parameter(retention)])

    def end(self) -> None:
        """End the lease now; steps, fingerprint and operation_id stay for whoever takes over."""
        self._write(f"leased_until = {self.dialect.clock}", [])

    def forget(self) -> None:
        """Free the key: nothing happened, and the next attempt is a new one towards the outside too."""
        sql = f"DELETE FROM {TABLE} WHERE id = %s AND token = %s AND state = %s"
        if self.execute(sql, [self.id, self._uuid(self.token), State.IN_PROGRESS.value]) != 1:
            raise ClaimLost(timedelta(0))

    def _write(self, columns: str, params: list[Any]) -> None:
        sql = f"UPDATE {TABLE} SET {columns} WHERE id = %s AND token = %s AND state = %s"
        params = [*params, self.id, self._uuid(self.token), State.IN_PROGRESS.value]
        if self.execute(sql, params) != 1:
            raise ClaimLost(timedelta(0))

    def _look(self) -> tuple[Any, ...] | None:
        clock = self.dialect.clock
        sql = (
            f"SELECT {self.dialect.names(*_COLUMNS)}, {self.dialect.left}, "
            f"COALESCE(expires_at <= {clock}, FALSE), COALESCE(leased_until <= {clock}, FALSE) "
            f"FROM {TABLE} WHERE id = %s"
        )
        return self.fetch(sql, [self.id])

    def _answer(self, row: tuple[Any, ...], span: timedelta) -> Found | Taken | None:
        fingerprint, state, status, headers, body, operation_id, steps, token, attempts, *times = row
        left, expired, ended = times
        if state == State.COMPLETED:
            if expired:
                return self._replace(span)
            return self.found(fingerprint, status, headers, body, left)
        if not ended:
            raise Busy
        asked = as_bytes(fingerprint)
        if None not in (asked, self.operation.fingerprint) and asked != self.operation.fingerprint:
            raise OtherFingerprint
        fields = {
            "operation_id": uuid.UUID(str(operation_id)),
            "steps": values.loads(steps),
            "attempts": attempts + 1,
        }
        return self._take_over(token, fields, span)

    def _insert(self, span: timedelta) -> Taken | None:
        taken = Taken(token=uuid.uuid4(), operation_id=uuid.uuid4(), steps={}, attempts=1)
        names = self.dialect.names(*_FIRST)
        marks = ", ".join(["%s"] * 12)
        sql = f"INSERT INTO {TABLE} ({names}) VALUES ({marks}, {self.dialect.clock}, {self.dialect.later})"
        params = [*self.identity, self.operation.fingerprint, State.IN_PROGRESS.value, "[]", "{}", 1]
        params += [self._uuid(taken.operation_id), self._uuid(taken.token), self.dialect.parameter(span)]
        try:
            with transaction.atomic(self.alias):
                self.execute(sql, params)
        except IntegrityError:  # a rival was quicker: look again
            return None
        return self._own(taken)

    def _replace(self, span: timedelta) -> Taken | None:
        """Take over an expired outcome: a new effect towards the outside."""
        taken = Taken(token=uuid.uuid4(), operation_id=uuid.uuid4(), steps={}, attempts=1, expired=True)
        clock, later = self.dialect.clock, self.dialect.later
        sql = (
            f"UPDATE {TABLE} SET fingerprint = %s, operation_id = %s, token = %s, state = %s, attempts = 1, "
            "steps = '{}', status = NULL, headers = '[]', body = NULL, completed_at = NULL, "
            f"expires_at = NULL, created_at = {clock}, leased_until = {later} "
            f"WHERE id = %s AND expires_at <= {clock}"
        )
        params = [self.operation.fingerprint, self._uuid(taken.operation_id), self._uuid(taken.token)]
        params += [State.IN_PROGRESS.value, self.dialect.parameter(span), self.id]
        return self._claimed(taken, lambda: self.execute(sql, params))

    def _take_over(self, token: Any, fields: dict[str, Any], span: timedelta) -> Taken | None:
        taken = Taken(token=uuid.uuid4(), **fields)
        sql = (
            f"UPDATE {TABLE} SET token = %s, attempts = %s, leased_until = {self.dialect.later} "
            f"WHERE id = %s AND token = %s AND state = %s AND leased_until <= {self.dialect.clock}"
        )
        params = [self._uuid(taken.token), taken.attempts, self.dialect.parameter(span)]
        params += [self.id, token, State.IN_PROGRESS.value]
        return self._claimed(taken, lambda: self.execute(sql, params))

    def _claimed(self, taken: Taken, update: Callable[[], int]) -> Taken | None:
        with transaction.atomic(self.alias):
            self._refuse_to_wait()
            return self._own(taken) if update() == 1 else None

    def _refuse_to_wait(self) -> None:
        """Be busy, rather than wait for an owner whose lease has ended inside a step."""
        if not self.connection.features.has_select_for_update_skip_locked:
            return
        if self.fetch(f"SELECT 1 FROM {TABLE} WHERE id = %s FOR UPDATE SKIP LOCKED", [self.id]) is None:
            raise Busy

    def _own(self, taken: Taken) -> Taken:
        self.token = taken.token
        return taken

    def _uuid(self, value: uuid.UUID | None) -> Any:
        native = self.connection.features.has_native_uuid_field
        return str(value) if native else value.hex  # type: ignore[union-attr]
