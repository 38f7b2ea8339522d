import subprocess
import sys

import pytest

from tests.campaigns import rounds
from tests.imports.files import numbered
from tests.processes import ROOT, environment

SETTINGS = "config.settings"
MOST_MB = 300


@pytest.fixture
def fresh(templates):
    fresh = templates.fresh(vendor="postgresql", settings=SETTINGS)
    connection = fresh.connect()
    connection.cursor().execute("UPDATE stock_stockitem SET on_hand = 1000000")
    connection.close()
    yield fresh
    fresh.drop()


@pytest.mark.campaign
@pytest.mark.timeout(1800)
def test_a_large_file_takes_little_memory(fresh, tmp_path):
    lines = rounds(short=20_000, full=200_000)
    file = tmp_path / "orders.csv"
    file.write_bytes(numbered(lines, remark="a remark of some length that somebody has typed"))

    def run():
        done = subprocess.run(
            [sys.executable, "-m", "tests.imports.weighing", "import_orders", str(file), "--user", "alice"],
            cwd=ROOT,
            env=environment(database=fresh, settings=SETTINGS) | {"IMPORTS_DIR": str(tmp_path / "imports")},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout, int(done.stderr.split()[-1])

    printed, most_mb = run()
    assert f"done: created {lines}" in printed
    assert most_mb < MOST_MB

    printed, most_mb = run()
    assert f"done (imported before): created {lines}" in printed
    assert most_mb < MOST_MB
