"""What it costs that a file is imported once: ``python -m benchmarks.imports``.

The whole import (upload, digests, check, chunks, report) against a bare parse by the same reader and
``bulk_create`` of the same orders, lines and ledger rows. Exits with 1 when a target is missed.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks import servers
from tests.databases import VENDORS

AT_MOST = 3.0

Ratio = tuple[float, float, float]
"""Lower quartile, median, upper quartile."""


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks.imports", description=__doc__)
    options.add_argument("--rounds", type=int, default=7, help="imports of each kind (7)")
    options.add_argument("--lines", type=int, default=10_000, help="lines of a file (10000)")
    chosen = options.parse_args()
    console = Console()
    console.print(f"{servers.PostgreSQL.name}: {servers.provide(servers.PostgreSQL)}")
    with prepared():
        from benchmarks.imports import measure

        with Progress(console=console, transient=True) as progress:
            results = measure.compare(rounds=chosen.rounds, lines=chosen.lines, track=progress.track)
    console.print(table(results, rounds=chosen.rounds, lines=chosen.lines))
    return any(median > AT_MOST for _low, median, _high in results.values())


@contextmanager
def prepared() -> Iterator[None]:
    """Have a database with the shop's tables, and a place for files."""
    database = VENDORS["postgresql"](name=f"benchmark_{os.getpid()}")
    database.create()
    server = os.environ["DATABASE_URL"]
    with tempfile.TemporaryDirectory() as directory:
        os.environ |= {
            "DATABASE_URL": database.url,
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "IMPORTS_DIR": directory,
            "SECRET_KEY": "known to everybody who reads the benchmarks",
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
    from django.core.management import call_command

    from demo.data import create_demo_data

    call_command("migrate", verbosity=0)
    create_demo_data(stock=10**9)


def table(results: dict[str, Ratio], *, rounds: int, lines: int) -> Table:
    title = f"Time as a ratio to bare parse and bulk_create, {rounds} rounds of {lines:,} lines"
    table = Table(title=title)
    for name in ("file", "median", "middle half", "target"):
        table.add_column(name, justify="left" if name == "file" else "right")
    for name, (low, median, high) in results.items():
        target = f"≤ {AT_MOST:.2f} {'✘' if median > AT_MOST else '✔'}"
        table.add_row(name, f"{median:.2f}", f"{low:.2f} to {high:.2f}", target)
    return table


if __name__ == "__main__":
    sys.exit(main())
