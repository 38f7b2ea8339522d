"""Time and memory that hostile and large files take, each in a process of its own."""

import json
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from imports.reading.columns import COLUMNS
from tests.imports.reading.building import SHEET, Raw, order, parts, sheet_data

MEGABYTE = 1024 * 1024

PROGRAM = """
import json, resource, sys, time
from pathlib import Path
import django
from django.conf import settings
settings.configure(USE_I18N=False)
django.setup()
from imports.reading.refusals import FileRefused
from imports.reading.repeats import read_checked

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

path = Path(sys.argv[1])
list(read_checked(Path(sys.argv[3]), filename="orders.xlsx"))
before, started, items, code = peak(), time.process_time(), 0, ""
try:
    for item in read_checked(path, filename=sys.argv[2]):
        items += 1
except FileRefused as refusal:
    code = refusal.code
print(json.dumps([items, code, peak() - before, time.process_time() - started]))
"""


@pytest.fixture
def measure(tmp_path):
    """Reads a file in a fresh process: lines, refusal, bytes more than idle, seconds of CPU."""
    warm = tmp_path / "warm"
    warm.write_bytes((Path(__file__).parents[2] / "data" / "files" / "base_orders.xlsx").read_bytes())

    def measure(path: Path, filename: str) -> tuple[int, str, int, float]:
        command = [sys.executable, "-c", PROGRAM, str(path), filename, str(warm)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
        return tuple(json.loads(done.stdout))

    return measure


def packed(path: Path, sheet: Iterable[str]) -> Path:
    """A workbook whose sheet is written piece by piece."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts("").items():
            if name != SHEET:
                archive.writestr(name, part)
        head, tail = parts("|")[SHEET].split("|")
        with archive.open(SHEET, "w") as file:
            for piece in (head, *sheet, tail):
                file.write(piece.encode())
    return path


def numbered(line: int) -> str:
    """One line of a sheet with an order of its own."""
    cells = order(
        f"SO-2024-{line:07}", quantity=Raw("<v>2</v>"), unit_price=Raw("<v>19.9</v>"), remark=f"remark {line}"
    )
    return sheet_data([cells]).replace('1"', f'{line}"')


class TestBombs:
    LINE = '<row r="{0}"><c r="A{0}" t="inlineStr"><is><t>' + "x" * 900 + "</t></is></c></row>"

    def pieces(self):
        yield sheet_data([COLUMNS])
        for line in range(2, 106_000):
            yield self.LINE.format(line)

    def test_is_refused_before_it_is_unpacked(self, measure, tmp_path):
        path = packed(tmp_path / "bomb", self.pieces())
        assert path.stat().st_size < MEGABYTE

        items, code, grown, seconds = measure(path, "orders.xlsx")

        assert (items, code) == (0, "zip_bomb")
        assert grown < 20 * MEGABYTE
        assert seconds < 2

    def test_that_lies_about_its_size_is_not_unpacked_either(self, measure, tmp_path):
        path = packed(tmp_path / "bomb", self.pieces())
        content = bytearray(path.read_bytes())
        entry = content.rindex(b"PK\x01\x02")
        content[entry + 24 : entry + 28] = struct.pack("<I", 5000)
        path.write_bytes(content)

        items, code, grown, seconds = measure(path, "orders.xlsx")

        assert (items, code) == (0, "unreadable")
        assert grown < 20 * MEGABYTE
        assert seconds < 2


class TestEmptyRows:
    def test_styled_ones_below_the_orders(self, measure, tmp_path):
        empty = (
            f'<row r="{line}">' + "".join(f'<c r="{letter}{line}" s="3"/>' for letter in "ABCDEFG") + "</row>"
            for line in range(7, 20_007)
        )
        orders = [sheet_data([COLUMNS]), *map(numbered, range(2, 7))]
        path = packed(tmp_path / "empty", (*orders, *empty))

        items, code, grown, seconds = measure(path, "orders.xlsx")

        assert (items, code) == (5, "")
        assert grown < 20 * MEGABYTE
        assert seconds < 5

    def test_one_in_the_last_line_of_a_sheet(self, measure, tmp_path):
        stray = '<row r="1048576"><c r="XFD1048576" s="3"/></row>'
        orders = [sheet_data([COLUMNS]), *map(numbered, range(2, 7))]
        path = packed(tmp_path / "stray", (*orders, stray))

        items, code, grown, seconds = measure(path, "orders.xlsx")

        assert (items, code) == (5, "")
        assert grown < 20 * MEGABYTE
        assert seconds < 1


class TestLargeFiles:
    def test_200_000_lines_of_text(self, measure, tmp_path):
        path = tmp_path / "large"
        with path.open("w") as file:
            file.write(",".join(COLUMNS) + "\n")
            file.writelines(
                f"SO-2024-{line:07},13800000001,TEA-100,2,19.90,2024-11-01,remark {line}\n"
                for line in range(200_000)
            )

        items, code, grown, seconds = measure(path, "orders.csv")

        assert (items, code) == (200_000, "")
        assert grown < 100 * MEGABYTE
        assert seconds < 40

    def test_10_000_lines_of_a_workbook_pack_well_and_are_read(self, measure, tmp_path):
        path = packed(tmp_path / "orders", (sheet_data([COLUMNS]), *map(numbered, range(2, 10_002))))

        items, code, grown, seconds = measure(path, "orders.xlsx")

        assert (items, code) == (10_000, "")
        assert grown < 20 * MEGABYTE
        assert seconds < 5


def test_a_cell_is_held_no_longer_than_allowed(measure, tmp_path):
    endless = ('<row r="2"><c r="A2" t="inlineStr"><is><t>', *["x" * 65_536] * 120, "</t></is></c></row>")
    path = packed(tmp_path / "cell", (sheet_data([COLUMNS]), *endless))

    items, code, grown, seconds = measure(path, "orders.xlsx")

    assert (items, code) == (0, "cell_too_long")
    assert grown < 20 * MEGABYTE
    assert seconds < 1
