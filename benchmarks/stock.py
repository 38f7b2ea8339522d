"""What each way to take stock costs when many buy one article: ``python -m benchmarks.stock``.

All figures are ratios within a round, with as many buyers: to the conditional update, and for the gate of a
flash sale to the refusal by the database. Exits with 1 when a target is missed.
"""

import argparse
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from pathlib import Path
from threading import Barrier
from typing import Any

import django
from django.conf import settings
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks import servers
from config.databases import database
from tests.databases import VENDORS, Database
from tests.servers.mariadb import MariaDB
from tests.servers.private import ServerFailed
from tests.servers.redis import Redis

SERVERS = {"postgresql": servers.PostgreSQL, "mariadb": MariaDB}
BUYERS = (1, 8, 32)
SKU = "TEA-100"
SOLD = "TEA-SOLD"
PIECES = 10**9

Ratio = tuple[float, float, float]
"""Lower quartile, median, upper quartile."""

Samples = dict[tuple[str, int, str], list[float]]
"""Seconds of each round by database, buyers and way."""

numbers = count(1)


@dataclass(frozen=True)
class Way:
    """One way to take a piece: ``take`` gets the alias of a database and a reference."""

    text: str
    take: Callable[[str, str], Any]
    base: str = "conditional"
    at_most: float | None = None
    has_gate: bool = False


def strategy(name: str) -> Callable[[str, str], Any]:
    def take(alias: str, reference: str) -> None:
        from idempotency.exceptions import OperationInProgress
        from stock.exceptions import StockBusy
        from stock.models import StockItem

        while True:  # as its client does
            try:
                StockItem.objects.using(alias).deduct(sku=SKU, quantity=1, reference=reference, strategy=name)
            except (StockBusy, OperationInProgress):
                continue
            return

    return take


def refused(alias: str, reference: str) -> None:
    """Come to a flash sale in which nothing is left, each time as another user."""
    from django.utils import timezone

    from flashsales import door, services
    from stock.exceptions import InsufficientStock

    buyer = {"user_id": int(reference.rpartition(":")[2]), "mark": "00"}
    try:
        with door.passed(sku=SOLD, **buyer):
            services.buy(sku=SOLD, now=timezone.now(), using=alias, **buyer)
    except InsufficientStock:
        return
    raise AssertionError("something was sold")


WAYS = {
    "conditional": Way("conditional update", strategy("conditional")),
    "optimistic": Way("optimistic version", strategy("optimistic")),
    "locked": Way("row lock", strategy("locked")),
    "refused": Way("sold out, says the database", refused),
    "gate": Way("sold out, says the gate", refused, base="refused", at_most=0.20, has_gate=True),
}


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks.stock", description=__doc__)
    options.add_argument("--rounds", type=int, default=15, help="blocks of each way (15)")
    options.add_argument("--deductions", type=int, default=320, help="deductions of a block (320)")
    options.add_argument("--only", choices=list(SERVERS), help="one database")
    chosen = options.parse_args()
    console = Console()
    console.print(servers.provide(Redis))
    with ExitStack() as at_end:
        made = {
            vendor: at_end.enter_context(fresh(vendor))
            for vendor in ([chosen.only] if chosen.only else SERVERS)
            if served(vendor, console)
        }
        prepare(made)
        samples = measure(list(made), rounds=chosen.rounds, deductions=chosen.deductions, console=console)
    console.print(table(samples, rounds=chosen.rounds, deductions=chosen.deductions))
    return any(is_missed(samples, crowd) for crowd in samples)


def served(vendor: str, console: Console) -> bool:
    try:
        console.print(f"{vendor}: {servers.provide(SERVERS[vendor])}")
    except ServerFailed as error:
        if vendor != "mariadb":
            raise
        console.print(f"{vendor}: left out. {error}")
        return False
    return True


@contextmanager
def fresh(vendor: str) -> Iterator[Database]:
    made = VENDORS[vendor](name=f"benchmark_{os.getpid()}")
    made.create()
    try:
        yield made
    finally:
        made.drop()


def prepare(made: dict[str, Database]) -> None:
    databases = {vendor: database(one.url, base=Path(__file__).parent) for vendor, one in made.items()}
    settings.configure(
        DATABASES={"default": {}, **databases},
        INSTALLED_APPS=[
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "idempotency",
            "stock",
            "orders",
            "flashsales",
        ],
        USE_TZ=True,
        STOCK_STRATEGY="conditional",
        FLASH_GATE_URL="",
        FLASH_GATE_TIMEOUT=timedelta(seconds=1),
        FLASH_ADMISSION_PATIENCE=timedelta(minutes=1),
    )
    django.setup()
    from django.core.management import call_command

    from stock.models import StockItem

    for vendor in made:
        call_command("migrate", database=vendor, verbosity=0)
        StockItem.objects.using(vendor).recount(sku=SKU, on_hand=PIECES)
        sell_out(vendor)


def sell_out(vendor: str) -> None:
    from django.utils import timezone

    from flashsales import gate
    from flashsales.models import FlashSale

    now = timezone.now()
    span = {"starts_at": now, "ends_at": now + timedelta(days=1), "created_at": now}
    sale = FlashSale.objects.using(vendor).create(sku=SOLD, units=1, sold=1, **span)
    with gated():
        gate.load(sale, since=gate.begin(sale), marks=[(0, True, "ff")])


@contextmanager
def gated() -> Iterator[None]:
    settings.FLASH_GATE_URL = os.environ[Redis.variable]
    yield
    settings.FLASH_GATE_URL = ""


def measure(vendors: list[str], *, rounds: int, deductions: int, console: Console) -> Samples:
    crowds = [(vendor, buyers) for vendor in vendors for buyers in BUYERS]
    samples: Samples = {(*crowd, way): [] for crowd in crowds for way in WAYS}
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("deducting", total=(1 + rounds) * len(samples))
        for number in range(1 + rounds):
            for vendor, buyers in crowds:
                for way in random.sample(list(WAYS), len(WAYS)):
                    with gated() if WAYS[way].has_gate else nullcontext():
                        seconds = block_seconds(vendor, buyers, WAYS[way], deductions=deductions)
                    if number:  # the first round is for warming up
                        samples[vendor, buyers, way].append(seconds)
                    progress.advance(task)
    return samples


def block_seconds(vendor: str, buyers: int, way: Way, *, deductions: int) -> float:
    """Return how long ``buyers`` at a time need for all deductions, on connections that are open already."""
    start = Barrier(buyers + 1)

    def buy(index: int) -> None:
        from django.db import connections

        connections[vendor].ensure_connection()
        try:
            start.wait(60)
            for _ in range(deductions // buyers):
                way.take(vendor, f"order:{next(numbers)}")
        finally:
            connections[vendor].close()

    with ThreadPoolExecutor(buyers) as pool:
        bought = [pool.submit(buy, index) for index in range(buyers)]
        start.wait(60)
        began = time.perf_counter()
        for each in bought:
            each.result()
        return time.perf_counter() - began


def table(samples: Samples, *, rounds: int, deductions: int) -> Table:
    title = f"One article, {deductions} deductions a block, {rounds} rounds: time as a ratio, median"
    table = Table(title=title)
    texts = ("database", "what", "to")
    for name in ("database", "buyers at once", "what", "to", "median", "middle half", "target"):
        table.add_column(name, justify="left" if name in texts else "right")
    for vendor, buyers, way in samples:
        kind = WAYS[way]
        low, median, high = ratio(samples, (vendor, buyers, way))
        shown = f"{low:.2f} to {high:.2f}" if way != kind.base else ""
        mark = "✘" if is_missed(samples, (vendor, buyers, way)) else "✔"
        target = "" if kind.at_most is None else f"≤ {kind.at_most:.2f} {mark}"
        row = (vendor, str(buyers), kind.text, WAYS[kind.base].text, f"{median:.2f}", shown, target)
        table.add_row(*row)
    return table


def is_missed(samples: Samples, crowd: tuple[str, int, str]) -> bool:
    at_most = WAYS[crowd[2]].at_most
    return at_most is not None and ratio(samples, crowd)[1] > at_most


def ratio(samples: Samples, crowd: tuple[str, int, str]) -> Ratio:
    vendor, buyers, way = crowd
    pairs = zip(samples[crowd], samples[vendor, buyers, WAYS[way].base], strict=True)
    low, middle, high = statistics.quantiles([one / other for one, other in pairs], n=4)
    return low, middle, high


if __name__ == "__main__":
    sys.exit(main())
