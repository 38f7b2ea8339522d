"""Which cell of a line is what: the headings say so."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, islice
from typing import Final

from .cells import Cell, Record, is_blank
from .refusals import refusal

COLUMNS: Final = (
    "order_no",
    "customer_phone",
    "sku",
    "quantity",
    "unit_price",
    "order_date",
    "remark",
)
OPTIONAL: Final = frozenset({"remark"})
CHINESE: Final = {
    "订单号": "order_no",
    "手机号": "customer_phone",
    "商品编码": "sku",
    "数量": "quantity",
    "单价": "unit_price",
    "下单日期": "order_date",
    "备注": "remark",
}
NAMES: Final = {**{name: name for name in COLUMNS}, **CHINESE}

LOOK_FOR_HEADINGS: Final = 10
"""Lines that are looked at to say where the headings are."""


def column(heading: Cell) -> str | None:
    """Return the column that a heading names, whatever its case, width and blanks; ``None`` for others."""
    if not isinstance(heading, str) or len(heading) > 100:
        return None
    text = unicodedata.normalize("NFKC", heading).casefold()
    visible = "".join(character for character in text if unicodedata.category(character) != "Cf")
    return NAMES.get(re.sub(r"[\s_-]+", "_", visible.strip(" \t\r\n\"'")))


def known(headings: Iterable[Cell]) -> dict[int, str]:
    """Return the columns by their place in the line, from 0."""
    found = enumerate(map(column, headings))
    return {place: name for place, name in found if name is not None}


@dataclass(frozen=True, slots=True)
class Headings:
    """What the first line says of the others."""

    places: Mapping[str, int]
    """The place of each column in a line, from 0."""
    named: frozenset[int]
    """The places that have any heading; a value elsewhere belongs to nothing."""
    gapless: int
    """How many headings there are before the first empty one."""


def headings(records: Iterator[Record]) -> Headings:
    """Take the first line. Columns with other headings are not read.

    :raises FileRefused: ``empty_file``, ``duplicate_column``, ``missing_column`` or ``header_not_in_row_1``.
    """
    first = next(records, None)
    if first is None:
        raise refusal("empty_file")
    places = _places(first)
    missing = [name for name in COLUMNS if name not in places and name not in OPTIONAL]
    line = _line_of_headings(records) if missing else first.number
    if line not in (None, 1):
        raise refusal("header_not_in_row_1", line=line)
    if missing:
        raise refusal("missing_column", columns=", ".join(missing))
    named = frozenset(place for place, cell in enumerate(first.cells) if not is_blank(cell))
    return Headings(places, named, next(place for place in count() if place not in named))


def _places(record: Record) -> dict[str, int]:
    places: dict[str, int] = {}
    for place, name in known(record.cells).items():
        if name in places:
            raise refusal("duplicate_column", column=name)
        places[name] = place
    return places


def _line_of_headings(records: Iterator[Record]) -> int | None:
    wanted = {*COLUMNS} - OPTIONAL
    near = islice(records, LOOK_FOR_HEADINGS)
    return next((record.number for record in near if wanted <= {*known(record.cells).values()}), None)
