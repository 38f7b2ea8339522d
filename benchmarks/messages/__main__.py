"""What a message costs that is done once: ``python -m benchmarks.messages``.

A guarded task against a plain one, ``consume_once`` against a function with its own ``atomic()``, and a relay
against bare ``send_task``. Exits with 1 when a target is missed.
"""

import argparse
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks import servers
from tests.databases import VENDORS
from tests.servers.private import spawn, temporary_directory
from tests.servers.redis import Redis

CALLS = 5
"""Function calls of a block: the fewer, the better a busy machine slows both sides alike."""

Ratio = tuple[float, float, float]


@dataclass(frozen=True)
class Row:
    text: str
    to: str
    group: str
    measure: str
    at_most: float | None = None

    def is_missed(self, ratio: Ratio) -> bool:
        return self.at_most is not None and ratio[1] > self.at_most


ROWS = (
    Row("IdempotentTask", "task with its own atomic()", "tasks", "guarded", at_most=1.3),
    Row("IdempotentTask, a repeat", "task with its own atomic()", "tasks", "repeat"),
    Row("control: the plain task", "itself", "tasks", "again"),
    Row("consume_once", "function with its own atomic()", "calls", "guarded"),
    Row("consume_once, a repeat", "function with its own atomic()", "calls", "repeat"),
    Row("control: the plain function", "itself", "calls", "again"),
    Row("one relay, from a full outbox", "bare send_task", "sends", "relayed"),
)


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks.messages", description=__doc__)
    options.add_argument("--rounds", type=int, default=25, help="blocks of each kind (25)")
    options.add_argument("--size", type=int, default=100, help="messages of a block (100)")
    chosen = options.parse_args()
    console = Console()
    for kind in (servers.PostgreSQL, Redis):
        console.print(f"{kind.name}: {servers.provide(kind)}")
    with prepared():
        results = measure(rounds=chosen.rounds, size=chosen.size, console=console)
    console.print(table(results, rounds=chosen.rounds, size=chosen.size))
    return any(row.is_missed(results[row.group][row.measure]) for row in ROWS)


@contextmanager
def prepared() -> Iterator[None]:
    """Have a database, and a queue that nobody else knows."""
    database = VENDORS["postgresql"](name=f"benchmark_{os.getpid()}")
    database.create()
    server = os.environ["DATABASE_URL"]
    os.environ |= {
        "DATABASE_URL": database.url,
        "BROKER_URL": os.environ["REDIS_URL"],
        "BENCHMARK_QUEUE": f"benchmarks-{os.getpid()}",
        "DJANGO_SETTINGS_MODULE": "benchmarks.messages.settings",
    }
    try:
        fill()
        yield
    finally:
        os.environ["DATABASE_URL"] = server
        database.drop()


def fill() -> None:
    import django

    django.setup()
    from django.contrib.auth.models import User
    from django.core.management import call_command

    from benchmarks.messages.measure import SKUS
    from benchmarks.project.models import Stock

    call_command("migrate", verbosity=0)
    User.objects.create(pk=1, username="alice")
    Stock.objects.bulk_create(Stock(sku=f"sku-{number}", on_hand=10**9) for number in range(SKUS))


def measure(*, rounds: int, size: int, console: Console) -> dict[str, dict[str, Ratio]]:
    from benchmarks.messages import measure as measured

    with ExitStack() as at_end, Progress(console=console, transient=True) as progress:

        def compare(what: str, kinds: dict[str, Any], *, to: str, rounds: int) -> dict[str, Ratio]:
            steps = progress.add_task(what, total=None)
            return measured.compare(
                kinds, to=to, rounds=rounds, track=partial(progress.track, task_id=steps, description=what)
            )

        sends = compare("sending", measured.sends(size=size), to="bare", rounds=rounds)
        many = rounds * size // CALLS
        calls = compare("calling", measured.calls(size=CALLS), to="plain", rounds=many)
        listener = at_end.enter_context(socket.create_server(("127.0.0.1", 0)))
        listener.settimeout(measured.PATIENCE)
        at_end.enter_context(worker())
        kinds = measured.tasks_of_a_worker(listener, size=size)
        tasks = compare("consuming", kinds, to="plain", rounds=rounds)
    return {"sends": sends, "calls": calls, "tasks": tasks}


@contextmanager
def worker() -> Iterator[None]:
    """One worker with one process."""
    command = (sys.executable, "-m", "celery", "-A", "benchmarks.messages", "worker", "--concurrency", "1")
    alone = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "WARNING")
    log = temporary_directory("benchmarks") / "worker"
    with log.open("ab") as output:
        process = spawn(*command, *alone, end=signal.SIGKILL, stdout=output)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def table(results: dict[str, dict[str, Ratio]], *, rounds: int, size: int) -> Table:
    table = Table(title=f"Time as a ratio, {rounds} rounds of {size} messages each")
    for name in ("what", "to", "median", "middle half", "target"):
        table.add_column(name, justify="left" if name in ("what", "to") else "right")
    for row in ROWS:
        low, median, high = results[row.group][row.measure]
        target = "" if row.at_most is None else f"≤ {row.at_most:.2f} {'✘' if median > row.at_most else '✔'}"
        table.add_row(row.text, row.to, f"{median:.2f}", f"{low:.2f} to {high:.2f}", target)
    return table


if __name__ == "__main__":
    sys.exit(main())
