import subprocess
import sys

import pytest

from tests.processes import ROOT, environment
from tests.stock import SERVERS

SETTINGS = "config.settings"


@pytest.fixture
def fresh(templates, vendor):
    fresh = templates.fresh(vendor=vendor, settings=SETTINGS)
    yield fresh
    fresh.drop()


def run(fresh, *, lives):
    """Run it and return how it ended."""
    return subprocess.run(
        [sys.executable, "-m", "tests.stock.dying", str(lives)],
        cwd=ROOT,
        env=environment(database=fresh, settings=SETTINGS),
        timeout=60,
    ).returncode


def rows(fresh, statement):
    connection = fresh.connect()
    try:
        cursor = connection.cursor()
        cursor.execute(statement)
        return list(cursor.fetchall())
    finally:
        connection.close()


@pytest.mark.parametrize("vendor", SERVERS)
class TestDeductAll:
    def test_takes_each_article_once_when_its_process_died_between_them(self, fresh):
        """STK-04"""
        assert run(fresh, lives=2) == 9
        assert rows(fresh, "SELECT COUNT(*) FROM stock_stockmovement") == [(0,)]
        assert run(fresh, lives=9) == 0
        assert rows(fresh, "SELECT COUNT(*) FROM stock_stockmovement") == [(3,)]
        left = rows(fresh, "SELECT sku, on_hand FROM stock_stockitem")
        assert dict(left) == {"TEA-100": 99, "TEA-200": 99, "CUP-010": 99, "POT-001": 100}
