"""kill -9, wherever it strikes."""

import random
import signal
import subprocess
import sys

import pytest

from tests.campaigns import rounds
from tests.imports.files import numbered
from tests.processes import ROOT, environment

SETTINGS = "config.settings"
LINES = 1_200
FAST = {"IMPORTS_LEASE": "0.2", "IMPORTS_CHUNK": "30"}

CONTENT = """
SELECT client_order_no, status, amount_minor, customer_phone, order_date, remark, sku, quantity, price_minor
FROM orders_order JOIN orders_orderline ON order_id = orders_order.id ORDER BY client_order_no, sku
"""
LEDGER = "SELECT sku, kind, quantity, COUNT(*) FROM stock_stockmovement GROUP BY sku, kind, quantity"
SHELF = "SELECT sku, on_hand FROM stock_stockitem ORDER BY sku"
REPORT = "SELECT status, reached, created, updated, unchanged, skipped, rejected FROM imports_import"


@pytest.fixture
def make(templates, vendor):
    made = []

    def make():
        fresh = templates.fresh(vendor=vendor, settings=SETTINGS)
        made.append(fresh)
        rows(fresh, "UPDATE stock_stockitem SET on_hand = 1000000", fetch=False)
        return fresh

    yield make
    for fresh in made:
        fresh.drop()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "orders.csv"
    path.write_bytes(numbered(LINES, quantity=2) + b"SO-BAD,1,TEA-100,1,1.00,2024-11-05,\n")
    return path


def rows(fresh, statement, *, fetch=True):
    connection = fresh.connect()
    try:
        cursor = connection.cursor()
        cursor.execute(statement)
        return [tuple(row) for row in cursor.fetchall()] if fetch else None
    finally:
        connection.close()


def live(fresh, file, directory, *, statements):
    """Import for so many statements; return how it ended."""
    return subprocess.run(
        [sys.executable, "-m", "tests.imports.dying", str(statements), str(file), "--user", "alice"],
        cwd=ROOT,
        env=environment(database=fresh, settings=SETTINGS) | FAST | {"IMPORTS_DIR": str(directory)},
        stdout=subprocess.DEVNULL,
        timeout=60,
    ).returncode


@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_a_killed_import_ends_as_an_undisturbed_one(make, file, tmp_path):
    """IMP-13"""
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    undisturbed, killed = make(), make()
    assert live(undisturbed, file, tmp_path / "one", statements=10**9) == 0

    deaths = rounds(short=3, full=20)
    for _ in range(deaths):
        ended = live(killed, file, tmp_path / "two", statements=chance.randint(12, 42))
        assert ended == -signal.SIGKILL, seed
        counted = rows(killed, "SELECT created FROM imports_import")
        assert rows(killed, "SELECT COUNT(*) FROM orders_order") == (counted or [(0,)]), seed
    assert live(killed, file, tmp_path / "two", statements=10**9) == 0

    for statement in (CONTENT, LEDGER, SHELF, REPORT):
        assert rows(killed, statement) == rows(undisturbed, statement), seed
    assert rows(killed, REPORT) == [("done", LINES + 2, LINES, 0, 0, 0, 1)]
    assert not list((tmp_path / "two").iterdir())
