"""The databases that hold records."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, Final

from django.apps import apps
from django.core.checks import CheckMessage, Error, Info, Tags, Warning, register  # noqa: A004
from django.db import connections, router
from django.db.backends.base.base import BaseDatabaseWrapper

from idempotency import dialects, engine
from idempotency.policies import Policy

from .views import routes

SHORTEST_TIMEOUT: Final = timedelta(seconds=10)
"""What SQLite's rivals should at least wait for the one writer; Python's default is 5 s."""

READ_COMMITTED: Final = "read committed"

SQLITE_HINT: Final = (
    'Set OPTIONS = {"transaction_mode": "IMMEDIATE", "timeout": 20, '
    '"init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL"}.'
)


@register("idempotency")
def check_vendor(**kwargs: Any) -> list[CheckMessage]:
    return [
        Error(
            f"Database {connection.alias!r} cannot hold idempotency records: nothing claims on "
            f"{connection.display_name}.",
            hint="Use PostgreSQL, MariaDB, MySQL or SQLite, or name another in IDEMPOTENCY_DATABASE.",
            id="idempotency.E003",
        )
        for connection in _connections()
        if connection.vendor not in dialects.VENDORS
    ]


@register("idempotency")
def check_sqlite(**kwargs: Any) -> list[CheckMessage]:
    """Without these options rivals fail at once with "database is locked"."""
    return [
        Warning(f"SQLite database {connection.alias!r} {trouble}", hint=SQLITE_HINT, id=number)
        for connection in _connections(vendor="sqlite")
        for number, is_wrong, trouble in SQLITE_RULES
        if is_wrong(connection)
    ]


@register("idempotency")
def check_isolation(**kwargs: Any) -> list[CheckMessage]:
    """With a snapshot older than the lock the look misses a rival's outcome, and the handler runs in vain."""
    return [
        Warning(
            f"Database {connection.alias!r} does not run at READ COMMITTED: a repeat whose transaction has "
            "read before it claims runs the handler in vain, and may be answered 409.",
            hint="Leave OPTIONS['isolation_level'] at Django's default, READ COMMITTED.",
            id="idempotency.W005",
        )
        for connection in _connections()
        if not _reads_committed(connection)
    ]


@register("idempotency")
def check_atomic_requests(**kwargs: Any) -> list[CheckMessage]:
    return [
        Info(
            f"Database {connection.alias!r} has ATOMIC_REQUESTS: after a deadlock or serialization failure a "
            "guarded view is answered 409, since only the owner of a transaction can run it again.",
            hint="Nothing is wrong. Guarded views need no ATOMIC_REQUESTS; take it away from them, with "
            "transaction.non_atomic_requests, to have conflicts run again.",
            id="idempotency.I001",
        )
        for connection in _connections()
        if connection.settings_dict["ATOMIC_REQUESTS"]
    ]


@register("idempotency")
def check_models(**kwargs: Any) -> list[CheckMessage]:
    """A record in one database and the effect in another are not committed together."""
    holders = set(_aliases())
    names = [
        model._meta.label
        for model in apps.get_models()
        if model._meta.managed and router.db_for_write(model) not in holders
    ]
    if not names or not holders:
        return []
    return [
        Warning(
            f"The router sends the writes of {_list(names)} to another database than that of the idempotency "
            f"records ({', '.join(sorted(holders))}): the two are not committed together.",
            hint="Guard operations on these models with Policy(using=…), and migrate idempotency in that "
            "database; or set IDEMPOTENCY_DATABASE. Silence this where no guarded operation writes them.",
            id="idempotency.W006",
        )
    ]


@register("idempotency", Tags.database)
def check_servers(databases: Iterable[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Ask the servers themselves: an option may be set for the server, the role or the session."""
    return [
        message
        for connection in _connections()
        if connection.alias in (databases or ()) and connection.vendor in SERVER_CHECKS
        if (message := SERVER_CHECKS[connection.vendor](connection))
    ]


def _check_postgresql(connection: BaseDatabaseWrapper) -> CheckMessage | None:
    if _ask(connection, "SELECT current_setting('idle_in_transaction_session_timeout')") != "0":
        return None
    return Warning(
        f"Database {connection.alias!r} has no idle_in_transaction_session_timeout: a process that hangs "
        "inside its transaction keeps the repeats of its operation at 409 for ever.",
        hint="Set it for the role: ALTER ROLE … SET idle_in_transaction_session_timeout = '60s'; or in "
        "OPTIONS: {'options': '-c idle_in_transaction_session_timeout=60s'}.",
        id="idempotency.W007",
    )


def _check_mysql(connection: BaseDatabaseWrapper) -> CheckMessage | None:
    if not int(_ask(connection, "SELECT @@innodb_rollback_on_timeout")):
        return None
    return Error(
        f"Database {connection.alias!r} has innodb_rollback_on_timeout=ON: a repeat that meets a running "
        "operation loses all that its transaction wrote before, while what follows is committed.",
        hint="Set innodb_rollback_on_timeout=OFF, the server's default.",
        id="idempotency.E004",
    )


SERVER_CHECKS: Final[dict[str, Callable[[BaseDatabaseWrapper], CheckMessage | None]]] = {
    "postgresql": _check_postgresql,
    "mysql": _check_mysql,
}


def _aliases() -> list[str]:
    """Return the databases that hold records, as far as settings and routes tell."""
    policies = [Policy(), *(route.policy for route in routes() if route.policy)]
    named = dict.fromkeys(engine.database(policy) for policy in policies)
    return [alias for alias in named if alias in connections.settings]


def _connections(*, vendor: str | None = None) -> list[BaseDatabaseWrapper]:
    return [connections[alias] for alias in _aliases() if vendor in (None, connections[alias].vendor)]


def _reads_committed(connection: BaseDatabaseWrapper) -> bool:
    level = connection.settings_dict["OPTIONS"].get("isolation_level", READ_COMMITTED)
    if connection.vendor == "mysql":
        return str(level).lower() == READ_COMMITTED
    if connection.vendor != "postgresql":
        return True
    from django.db.backends.postgresql.psycopg_any import IsolationLevel

    return level in (READ_COMMITTED, None, IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)


def _is_deferred(connection: BaseDatabaseWrapper) -> bool:
    mode = connection.settings_dict["OPTIONS"].get("transaction_mode") or "DEFERRED"
    return str(mode).upper() == "DEFERRED"


def _keeps_a_rollback_journal(connection: BaseDatabaseWrapper) -> bool:
    command = connection.settings_dict["OPTIONS"].get("init_command") or ""
    return not connection.is_in_memory_db() and "journal_mode=wal" not in _squeezed(command)  # type: ignore[attr-defined]


def _gives_up_early(connection: BaseDatabaseWrapper) -> bool:
    seconds: float = connection.settings_dict["OPTIONS"].get("timeout", 5)
    return seconds < SHORTEST_TIMEOUT.total_seconds()


SQLITE_RULES: Final = (
    (
        "idempotency.W002",
        _is_deferred,
        "begins its transactions DEFERRED: rivals fail at once instead of waiting.",
    ),
    (
        "idempotency.W003",
        _keeps_a_rollback_journal,
        "does not ask for WAL: readers and the writer block each other.",
    ),
    (
        "idempotency.W004",
        _gives_up_early,
        f"waits less than {SHORTEST_TIMEOUT.seconds} seconds for the writer: rivals of a slow one fail.",
    ),
)


def _ask(connection: BaseDatabaseWrapper, sql: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()[0]


def _squeezed(text: str) -> str:
    return "".join(text.split()).lower()


def _list(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown
