"""Whatever the bytes are: lines, or a refusal, and nothing else."""

import io
import time
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from imports.reading.lines import Line, Rejection
from imports.reading.refusals import FILES, LINES, FileRefused
from imports.reading.repeats import Repeat, read_checked
from tests.campaigns import rounds
from tests.imports.reading.building import FILES as EXAMPLES
from tests.imports.reading.building import Raw, csv, order, workbook, zipped

pytestmark = pytest.mark.campaign

fuzz = settings(
    max_examples=rounds(short=100, full=3000),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

NAMES = st.sampled_from(["orders.csv", "orders.xlsx"])
STARTS = st.sampled_from(
    [
        b"",
        csv(),
        b"\xef\xbb\xbf" + csv(),
        b"\xff\xfe",
        b"\xfe\xff",
        b"PK\x03\x04",
        b"PK\x05\x06",
        b"\xd0\xcf\x11\xe0",
    ]
)
PIECES = st.sampled_from(
    [
        b'"',
        b",",
        b";",
        b"\t",
        b"\r",
        b"\n",
        b"\0",
        b"1e9",
        b"SO-1",
        b"2.0",
        b"NaN",
        "急".encode(),
        "急".encode("gb18030"),
    ]
)
WORKBOOKS = st.sampled_from(
    sorted(path.name for path in EXAMPLES.glob("*.xlsx") if path.name != "csv_named.xlsx")
)
CELLS = st.one_of(
    st.text(max_size=30).filter(lambda text: text.isprintable()),
    st.builds(
        Raw,
        st.one_of(
            st.floats().map(lambda value: f"<v>{value!r}</v>"),
            st.text("0123456789.eE+-", max_size=40).map(lambda text: f"<v>{text}</v>"),
            st.just("<f>1+1</f>"),
        ),
        st.sampled_from(
            ["", 't="b"', 't="d"', 't="e"', 't="s"', 't="str"', *(f's="{n}"' for n in range(11))]
        ),
    ),
)


@pytest.fixture
def try_to_read(tmp_path: Path):
    def try_to_read(content: bytes, filename: str) -> None:
        path = tmp_path / "upload"
        path.write_bytes(content)
        started = time.process_time()
        items, refusal = read(path, filename)
        assert_sound(items)
        assert refusal is None or (refusal.code in FILES and str(refusal.reason))
        assert time.process_time() - started < 5

    return try_to_read


def read(path: Path, filename: str) -> tuple[list[Line | Rejection | Repeat], FileRefused | None]:
    try:
        return list(read_checked(path, filename=filename)), None
    except FileRefused as refusal:
        return [], refusal


def assert_sound(items: list[Line | Rejection | Repeat]) -> None:
    numbers = [item.number for item in items]
    assert numbers == sorted(set(numbers))
    lines = [item for item in items if isinstance(item, Line)]
    assert len({line.order_no for line in lines}) == len(lines)
    assert {item.first_number for item in items if isinstance(item, Repeat)} <= {
        line.number for line in lines
    }
    for item in items:
        if isinstance(item, Rejection):
            assert item.code in LINES
            assert str(item.reason)


@fuzz
@given(start=STARTS, pieces=st.lists(st.one_of(st.binary(max_size=20), PIECES), max_size=40), name=NAMES)
def test_any_bytes(try_to_read, start, pieces, name):
    try_to_read(start + b"".join(pieces), name)


@fuzz
@given(
    lines=st.lists(st.text(max_size=200), max_size=10),
    encoding=st.sampled_from(["utf-8", "utf-16", "gb18030"]),
)
def test_any_text_below_the_headings(try_to_read, lines, encoding):
    text = csv().decode() + "\n".join(lines)
    try_to_read(text.encode(encoding, errors="replace"), "orders.csv")


@fuzz
@given(
    name=WORKBOOKS,
    changes=st.lists(st.tuples(st.integers(min_value=0), st.integers(0, 255)), max_size=20),
    length=st.one_of(st.none(), st.integers(min_value=0)),
)
def test_any_change_of_the_bytes_of_a_workbook(try_to_read, name, changes, length):
    content = bytearray((EXAMPLES / name).read_bytes())
    for place, value in changes:
        content[place % len(content)] = value
    size = len(content) if length is None else length % len(content)
    try_to_read(bytes(content[:size]), "orders.xlsx")


@fuzz
@given(
    name=WORKBOOKS,
    part=st.integers(min_value=0),
    place=st.integers(min_value=0),
    cut=st.integers(0, 40),
    put=st.one_of(
        st.binary(max_size=20),
        st.sampled_from(
            [b"<row>", b"</row>", b'r="7"', b'<c r="A9">', b"</c>", b"<v>", b"<f/>", b"<!--", b"&#0;", b"&x;"]
        ),
    ),
)
def test_any_change_of_the_markup_of_a_workbook(try_to_read, name, part, place, cut, put):
    with zipfile.ZipFile(io.BytesIO((EXAMPLES / name).read_bytes())) as archive:
        content = {entry: archive.read(entry) for entry in archive.namelist()}
    changed = sorted(content)[part % len(content)]
    place %= len(content[changed])
    content[changed] = content[changed][:place] + put + content[changed][place + cut :]
    try_to_read(zipped(content), "orders.xlsx")


@fuzz
@given(rows=st.lists(st.lists(CELLS, max_size=8), max_size=6))
def test_any_cells(try_to_read, rows):
    try_to_read(workbook(*rows), "orders.xlsx")


@fuzz
@given(places=st.lists(st.integers(0, 6), max_size=7), values=st.lists(CELLS, min_size=7, max_size=7))
def test_orders_with_any_cells(try_to_read, places, values):
    cells = order()
    for place in places:
        cells[place] = values[place]
    try_to_read(workbook(cells, order(), cells), "orders.xlsx")
