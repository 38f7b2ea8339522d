"""What the databases say differently: their clock, spans of time and errors."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How one database speaks of time; application clocks differ, so none of them is asked."""

    clock: str
    """The database's own time."""

    quote: str = '"'
    """Stands around the name of a table or column."""

    later: str
    """The clock plus one parameter; NULL where that is NULL."""

    span: Callable[[timedelta], Any]
    """Makes that parameter."""

    left: str
    """Seconds until ``expires_at``; NULL where that is NULL."""

    def names(self, *names: str) -> str:
        """Quote and list names."""
        return ", ".join(f"{self.quote}{name}{self.quote}" for name in names)

    def parameter(self, span: timedelta | None) -> Any:
        """Return the parameter of :attr:`later`."""
        return None if span is None else self.span(span)


_DIALECTS: Final[dict[str, Dialect]] = {
    "postgresql": Dialect(
        clock="clock_timestamp()",
        later="clock_timestamp() + %s::interval",
        span=lambda span: span,
        left="EXTRACT(EPOCH FROM expires_at - clock_timestamp())",
    ),
    "mysql": Dialect(  # Django stores UTC and leaves the session's zone alone, so NOW() is another time
        clock="UTC_TIMESTAMP(6)",
        quote="`",
        later="UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND",
        span=lambda span: span // timedelta(microseconds=1),
        left="TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at) / 1000000",
    ),
    "sqlite": Dialect(
        clock="strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now')",
        later="strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', %s)",
        span=lambda span: f"{span.total_seconds():+.6f} seconds",
        left="(julianday(expires_at) - julianday('now')) * 86400",
    ),
}

VENDORS: Final = frozenset(_DIALECTS)

_CONFLICTS: Final = frozenset(
    {"40001", "40P01"}  # PostgreSQL: serialization failure, deadlock
    | {1213, 1205, 1020}  # MySQL: deadlock, lock wait timeout, changed since it was read
    | {"SQLITE_BUSY", "SQLITE_BUSY_SNAPSHOT"}
)

_LOST: Final = frozenset(
    {"57P01", "57P02", "57P03", "57P05"}  # PostgreSQL, beside class 08: shut down, crashed, not up yet, idle
    | {0, 1053, 1927, 2002, 2003, 2006, 2013, 2055, 4031}  # MySQL: shut down, killed, gone; 0 is a closed one
)

_MISTAKES: Final = frozenset({"SQLITE_ERROR", 1054, 1146})
"""A table or column that is not there: somebody forgot to migrate."""


def dialect(connection: BaseDatabaseWrapper) -> Dialect:
    """Return the dialect of a database."""
    return _DIALECTS[connection.vendor]


class Clock(models.Func):
    """The database's own time, in a query."""

    output_field = models.DateTimeField()

    def as_sql(self, compiler: Any, connection: BaseDatabaseWrapper, **context: Any) -> tuple[str, tuple[()]]:  # type: ignore[override]
        return dialect(connection).clock, ()


class Later(models.Func):
    """The database's own time plus a span, which may be negative, in a query."""

    output_field = models.DateTimeField()

    def __init__(self, span: timedelta) -> None:
        super().__init__()
        self.span = span

    def as_sql(  # type: ignore[override]
        self, compiler: Any, connection: BaseDatabaseWrapper, **context: Any
    ) -> tuple[str, tuple[Any]]:
        speaks = dialect(connection)
        return speaks.later, (speaks.parameter(self.span),)


def without_gap_locks(connection: BaseDatabaseWrapper) -> None:
    """Have the next transaction lock rows only, whatever isolation the project has chosen."""
    if connection.vendor == "mysql" and not connection.in_atomic_block:
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")


def is_conflict(error: BaseException) -> bool:
    """Tell whether a transaction failed only for its rivals' sake, and may succeed when run again."""
    return code(error) in _CONFLICTS


def is_lost(error: BaseException, connection: BaseDatabaseWrapper) -> bool:
    """Tell whether the connection has ended, or could not be made; what was said to it was right."""
    found = code(error)
    if found is None:  # the database said nothing: the driver did, and it may as well be somebody's mistake
        return connection.connection is None or bool(getattr(connection.connection, "closed", False))
    return found in _LOST or str(found).startswith("08")


def is_unavailable(error: BaseException) -> bool:
    """Tell whether an error is one of reaching the database, rather than of what was said to it."""
    return code(error) not in _MISTAKES


def code(error: BaseException) -> str | int | None:
    """Return the database's own code of an error: MySQL's number, PostgreSQL's SQLSTATE, SQLite's name."""
    cause = error.__cause__ or error
    if cause.args and isinstance(cause.args[0], int):
        return cause.args[0]
    for name in ("sqlstate", "pgcode", "sqlite_errorname"):
        if found := getattr(cause, name, None):
            return found  # type: ignore[no-any-return]
    return None
