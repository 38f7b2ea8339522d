"""What a guarded view costs, as ratios to the same view without a guard: ``python -m benchmarks.overhead``.

Exits with 1 when PostgreSQL misses a target.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from benchmarks import servers
from tests.databases import VENDORS, Database
from tests.servers.mariadb import MariaDB
from tests.servers.private import ServerFailed, temporary_directory

Ratio = tuple[float, float, float]


@dataclass(frozen=True)
class Row:
    text: str
    database: str
    measure: str
    at_most: float | None = None

    def is_missed(self, ratio: Ratio) -> bool:
        return self.at_most is not None and ratio[1] > self.at_most


ROWS = (
    Row("first request", "postgresql", "first", at_most=1.35),
    Row("replay", "postgresql", "replay"),
    Row("first request, replay_first", "postgresql", "first_looked", at_most=1.35),
    Row("replay, replay_first", "postgresql", "replay_looked", at_most=0.45),
    Row("first request, the view keeps its own atomic()", "postgresql", "first_atomic"),
    Row("authentication alone, in a view that does nothing", "postgresql", "nothing"),
    Row("control: the plain view against itself", "postgresql", "again"),
    Row("throughput of first requests, 8 threads", "postgresql", "threads"),
    Row("throughput of first requests, 8 processes", "postgresql", "processes"),
    Row("first request", "mariadb", "first"),
    Row("replay", "mariadb", "replay"),
    Row("first request", "sqlite", "first"),
    Row("replay", "sqlite", "replay"),
)


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__)
    options.add_argument("--rounds", type=int, default=1000, help="requests of each kind (1000)")
    options.add_argument("--blocks", type=int, default=9, help="blocks of 200 requests for throughput (9)")
    options.add_argument("--only", choices=list(VENDORS), help="one database")
    chosen = options.parse_args()
    console = Console()
    vendors = [chosen.only] if chosen.only else list(VENDORS)
    results = {}
    for vendor in vendors:
        try:
            console.print(f"{vendor}: {served(vendor)}")
        except ServerFailed as error:
            if vendor != "mariadb":
                raise
            console.print(f"{vendor}: left out. {error}")
            continue
        blocks = chosen.blocks if vendor == "postgresql" else 0
        results[vendor] = measure(vendor, rounds=chosen.rounds, blocks=blocks)
    known = [row for row in ROWS if row.measure in results.get(row.database, ())]
    rows = [(row, results[row.database][row.measure]) for row in known]
    console.print(table(rows, rounds=chosen.rounds))
    return any(row.is_missed(ratio) for row, ratio in rows)


def served(vendor: str) -> str:
    if vendor == "sqlite":
        os.environ["TEST_FILES"] = str(temporary_directory("benchmarks"))
        return "a temporary file"
    return servers.provide({"postgresql": servers.PostgreSQL, "mariadb": MariaDB}[vendor])


def measure(vendor: str, *, rounds: int, blocks: int) -> dict[str, Ratio]:
    with fresh(vendor) as database:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.overhead.measure", f"--rounds={rounds}", f"--blocks={blocks}"],
            env=os.environ | {"DATABASE_URL": database.url},
            stdout=subprocess.PIPE,
            check=True,
        )
    return json.loads(done.stdout)


@contextmanager
def fresh(vendor: str) -> Iterator[Database]:
    database = VENDORS[vendor](name=f"benchmark_{os.getpid()}")
    database.create()
    try:
        yield database
    finally:
        database.drop()


def table(rows: list[tuple[Row, Ratio]], *, rounds: int) -> Table:
    table = Table(title=f"Ratio to the same view without idempotency ({rounds} rounds)")
    for name in ("database", "what", "median", "middle half", "target"):
        table.add_column(name, justify="left" if name in ("database", "what") else "right")
    for row, (low, median, high) in rows:
        missed = row.is_missed((low, median, high))
        target = "" if row.at_most is None else f"≤ {row.at_most:.2f} {'✘' if missed else '✔'}"
        table.add_row(row.database, row.text, f"{median:.2f}", f"{low:.2f} to {high:.2f}", target)
    return table


if __name__ == "__main__":
    sys.exit(main())
