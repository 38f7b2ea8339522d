"""Operations to run by the engine itself, on any database."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections, transaction

from idempotency import engine
from idempotency.models import IdempotencyRecord
from idempotency.policies import Policy
from idempotency.values import Operation, Outcome, Run

from .models import Effect

# Only these tables are emptied after a test, which is quicker than all of three databases.
lab_db = pytest.mark.django_db(
    transaction=True, databases="__all__", available_apps=["idempotency", "tests.lab"]
)


def on(*vendors: str) -> pytest.MarkDecorator:
    """Run a test on these databases alone, where the others have nothing to show."""
    params = [pytest.param(vendor, marks=getattr(pytest.mark, vendor)) for vendor in vendors]
    return pytest.mark.parametrize("vendor", params, indirect=True)


WITH_RIVALS = on("postgresql", "mariadb")
"""SQLite has one writer: no two transactions overlap."""

Handler = Callable[[], tuple[Any, Outcome | None]]


def retention(record: IdempotencyRecord) -> timedelta:
    """How long a record lives, to the millisecond: PostgreSQL reads its clock for each column."""
    span = record.expires_at - record.completed_at
    return timedelta(milliseconds=round(span / timedelta(milliseconds=1)))


class Lab:
    """The engine on one database."""

    def __init__(self, database: str) -> None:
        self.database = database

    def operation(self, key: str = "key-1", **parts: Any) -> Operation:
        return Operation(**{"name": "lab.do", "scope": "lab", "key": key, "fingerprint": b"1" * 16, **parts})

    def run(
        self,
        key: str = "key-1",
        handler: Handler | None = None,
        *,
        policy: dict[str, Any] | None = None,
        before_rerun: Callable[[], None] | None = None,
        **parts: Any,
    ) -> Run:
        return engine.run(
            self.operation(key, **parts),
            handler or self.handler(),
            policy=Policy(using=self.database, **(policy or {})),
            before_rerun=before_rerun,
        )

    def handler(
        self, name: str = "done", *, then: Callable[[], Any] = lambda: None, keep: bool = True
    ) -> Handler:
        """Do something, call ``then``, and answer with the name."""

        def handle() -> tuple[str, Outcome | None]:
            self.do(name)
            then()
            return name, Outcome.of(name) if keep else None

        return handle

    def do(self, name: str) -> None:
        Effect.objects.using(self.database).create(name=name)

    @property
    def done(self) -> list[str]:
        return list(Effect.objects.using(self.database).order_by("pk").values_list("name", flat=True))

    @property
    def records(self) -> Any:
        return IdempotencyRecord.objects.using(self.database)

    def atomic(self) -> Any:
        return transaction.atomic(self.database)

    @property
    def connection(self) -> Any:
        return connections[self.database]


def end_connection(lab: Lab) -> None:
    """Have the server end our connection; return when it is gone."""
    own, end = {
        "postgresql": ("SELECT pg_backend_pid()", "SELECT pg_terminate_backend(%s, 10000)"),
        "mysql": ("SELECT connection_id()", "KILL HARD CONNECTION %s"),
    }[lab.connection.vendor]
    other = lab.connection.copy()
    with lab.connection.cursor() as ours, other.cursor() as theirs:
        ours.execute(own)
        theirs.execute(end, ours.fetchone())
    other.close()
