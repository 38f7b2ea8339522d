"""The two ways to take a file's orders in, each on empty tables."""

import csv
import gc
import io
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import xlsxwriter
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from imports.models import Import, Mode
from imports.reading.columns import COLUMNS
from imports.reading.lines import Line, read
from imports.running import run_import
from imports.services import receive
from orders.models import Order, OrderLine
from orders.numbers import new_order_no
from stock.models import Kind, StockItem, StockMovement

BATCH = 500
SKUS = ("TEA-100", "TEA-200", "CUP-010", "POT-001")

Ratio = tuple[float, float, float]
Way = Callable[[Path], None]


def compare(*, rounds: int, lines: int, track: Callable[..., Iterable[int]]) -> dict[str, Ratio]:
    """Return how long an import takes, as a ratio to the bare way in the same round; the first warms up."""
    ratios: dict[str, list[float]] = {"CSV": [], "XLSX": []}
    with tempfile.TemporaryDirectory() as directory:
        files = written(Path(directory), lines)
        for number in track(range(1 + rounds), description="importing"):
            for kind, file in files.items():
                taken = {way: seconds(way, file, lines) for way in random.sample([bare, whole], 2)}
                if number:
                    ratios[kind].append(taken[whole] / taken[bare])
    return {kind: quartiles(values) for kind, values in ratios.items()}


def quartiles(values: Sequence[float]) -> Ratio:
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else (values[0],) * 3
    return low, middle, high


def seconds(way: Way, file: Path, lines: int) -> float:
    empty()
    gc.collect()
    began = time.perf_counter()
    way(file)
    taken = time.perf_counter() - began
    counts = {model: model.objects.count() for model in (Order, OrderLine, StockMovement)}
    if set(counts.values()) != {lines}:
        raise RuntimeError(f"{way.__name__} made {counts}")
    return taken


def empty() -> None:
    tables = ", ".join(model._meta.db_table for model in (Import, Order, OrderLine, StockMovement))
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {tables}, idempotency_record, idempotency_outbox CASCADE")


def bare(file: Path) -> None:
    """Parse, and write what was parsed; once is all that anybody asks."""
    user_id, now = user(), timezone.now()
    lines = [line for line in read(file, filename=file.name) if isinstance(line, Line)]
    for start in range(0, len(lines), BATCH):
        with transaction.atomic():
            write(lines[start : start + BATCH], user_id, now)


def write(lines: Sequence[Line], user_id: int, now: Any) -> None:
    orders = Order.objects.bulk_create(order(line, user_id, now) for line in lines)
    OrderLine.objects.bulk_create(
        OrderLine(order=made, sku=line.sku, quantity=line.quantity, price_minor=line.unit_price_minor)
        for made, line in zip(orders, lines, strict=True)
    )
    StockMovement.objects.bulk_create(
        StockMovement(
            reference=made.reference, sku=line.sku, kind=Kind.DEDUCTED, quantity=line.quantity, created_at=now
        )
        for made, line in zip(orders, lines, strict=True)
    )
    taken: Counter[str] = Counter()
    for line in lines:
        taken[line.sku] += line.quantity
    for sku, quantity in taken.items():
        StockItem.objects.filter(sku=sku).update(on_hand=F("on_hand") - quantity)


def order(line: Line, user_id: int, now: Any) -> Order:
    return Order(
        user_id=user_id,
        client_order_no=line.order_no,
        order_no=new_order_no(now=now),
        currency="CNY",
        amount_minor=line.quantity * line.unit_price_minor,
        customer_phone=line.customer_phone,
        order_date=line.order_date,
        remark=line.remark,
        created_at=now,
    )


def whole(file: Path) -> None:
    """Import it as an upload and its worker do."""
    with file.open("rb") as opened:
        receipt = receive(
            user_id=user(),
            mode=Mode.BATCH,
            period="",
            file_name=file.name,
            chunks=iter(lambda: opened.read(65536), b""),
            now=timezone.now(),
        )
    run_import(import_id=str(receipt.source.pk))


def user() -> int:
    return int(get_user_model().objects.get(username="alice").pk)


def written(directory: Path, lines: int) -> dict[str, Path]:
    """Write the same orders as CSV and XLSX."""
    rows = [list(COLUMNS), *(row(number) for number in range(lines))]
    files = {"CSV": directory / "orders.csv", "XLSX": directory / "orders.xlsx"}
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    files["CSV"].write_text(text.getvalue())
    with xlsxwriter.Workbook(files["XLSX"]) as book:
        sheet = book.add_worksheet()
        for number, cells in enumerate(rows):
            sheet.write_row(number, 0, cells)
    return files


def row(number: int) -> list[Any]:
    phone, sku = str(13800000000 + number), SKUS[number % len(SKUS)]
    return [f"SO-{number:08}", phone, sku, 1 + number % 5, 6.9 + number % 90, "2024-11-07", ""]
