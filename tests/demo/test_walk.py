"""``manage.py demo`` as its users start it: a process of its own, on each database."""

import os
import signal
import subprocess
import sys

import httpx
import pytest

from demo.report import report
from tests.processes import ROOT, environment, new_database
from tests.servers.private import free_port, wait_until


@pytest.fixture
def fresh(vendor):
    database = new_database(vendor)
    database.create()
    yield database
    database.drop()


def demo(*arguments, database, **variables):
    env = environment(database=database, settings="config.settings") | {"LANGUAGE": "en", **variables}
    command = [sys.executable, "manage.py", "demo", *arguments]
    return subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def walk(database, **variables):
    process = demo("--no-serve", database=database, **variables)
    output, _ = process.communicate(timeout=100)
    return process.returncode, output


class TestWalk:
    def test_counts_everything_right_on_a_database_that_it_never_empties(self, fresh):
        for _ in range(2):
            code, output = walk(fresh)
            assert code == 0, output
            assert "✘" not in output
        connection = fresh.connect()
        cursor = connection.cursor()
        cursor.execute("SELECT COUNT(*) FROM orders_order")
        assert cursor.fetchone()[0] == 10
        connection.close()

    @pytest.mark.parametrize("vendor", ["sqlite"], indirect=False)
    def test_fits_a_narrow_terminal_and_speaks_chinese(self, fresh):
        code, output = walk(fresh, LANGUAGE="zh_CN:en", COLUMNS="80")
        assert code == 0, output
        assert "连点三次" in output


class TestServing:
    @pytest.mark.parametrize("vendor", ["sqlite"], indirect=False)
    def test_serves_until_it_is_told_to_stop(self, fresh):
        port = free_port()
        process = demo("--port", str(port), database=fresh, WALK="0", DEMO_STOCK="3")
        url = f"http://127.0.0.1:{port}"
        try:
            wait_until(lambda: httpx.get(f"{url}/livez").raise_for_status(), alive=lambda: process.poll() is None)
            stock = httpx.get(f"{url}/api/stock/TEA-100", headers={"Authorization": "Token demo-alice"})
            assert stock.json()["data"]["remaining"] == 3
            assert httpx.get(f"{url}/static/demo/start.css").status_code == 200
        finally:
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate(timeout=30)
        assert process.returncode == 0, output
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/livez")
