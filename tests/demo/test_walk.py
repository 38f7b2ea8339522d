"""``manage.py demo`` as its users start it: a process of its own, on each database."""

import signal
import subprocess
import sys
from io import StringIO

import httpx
import pytest
from rich.cells import cell_len
from rich.console import Console

from demo.report import report
from demo.walk import Check, Step
from tests.processes import ROOT, environment, new_database
from tests.servers.private import free_port, wait_until


@pytest.fixture
def fresh():
    database = new_database("sqlite")
    database.create()
    yield database
    database.drop()


def demo(*arguments, database, **variables):
    env = environment(database=database, settings="config.settings") | {"LANGUAGE": "en", **variables}
    command = [sys.executable, "manage.py", "demo", *arguments]
    return subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def walk(database, **variables):
    process = demo("--no-serve", database=database, **variables)
    output, _ = process.communicate(timeout=100)
    return process.returncode, output


class TestWalk:
    def test_counts_right_and_leaves_what_was_there(self, vendor, templates):
        database = templates.fresh(vendor=vendor, settings="config.settings")
        code, output = walk(database)
        try:
            assert code == 0, output
            assert output.count("✔") > 20
            assert output.count("✘") == 1  # what it would mean
            assert "all right" in output
            connection = database.connect()
            cursor = connection.cursor()
            cursor.execute("SELECT on_hand, version FROM stock_stockitem WHERE sku = 'TEA-100'")
            assert tuple(cursor.fetchone()) == (100, 0)
            connection.close()
        finally:
            database.drop()

    def test_fits_a_narrow_terminal_in_chinese(self, fresh):
        code, output = walk(fresh, LANGUAGE="zh_CN:en", COLUMNS="80")
        assert code == 0, output
        assert "一个订单；处理过程中客" in output
        assert "…" not in output
        assert {cell_len(line) for line in output.splitlines()} == {80}


class TestReport:
    def test_tells_a_wrong_figure(self, monkeypatch):
        steps = [Step("one order", [Check("orders", 2, 1)])]
        monkeypatch.setattr("demo.report.SCENARIOS", [("Trouble", lambda walk: steps)])
        console = Console(file=StringIO(), width=160)
        assert report(None, console) is False
        assert "✘ orders: 2, expected 1" in console.file.getvalue()


class TestServing:
    def test_serves_until_it_is_told_to_stop(self, fresh):
        port = free_port()
        process = demo("--port", str(port), database=fresh, WALK="0", DEMO_STOCK="3")
        url = f"http://127.0.0.1:{port}"
        try:
            wait_until(
                lambda: httpx.get(f"{url}/livez").raise_for_status(), alive=lambda: process.poll() is None
            )
            stock = httpx.get(f"{url}/api/stock/TEA-100", headers={"Authorization": "Token demo-alice"})
            assert stock.json()["data"]["remaining"] == 3
            assert httpx.get(f"{url}/static/demo/start.css").status_code == 200
        finally:
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate(timeout=30)
        assert process.returncode == 0, output
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/livez")
