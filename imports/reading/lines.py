"""The lines of a file of orders, checked one by one."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from .cells import Cell, Record, is_blank
from .checks import CHECKS, Unfit
from .columns import Headings, headings
from .csvs import records as records_of_text
from .kinds import Kind, kind_of
from .limits import Limits
from .merges import Merges
from .occurrences import Occurrences
from .refusals import reason, refusal
from .sheets import records as records_of_workbook
from .spools import Spool


@dataclass(frozen=True, slots=True)
class Line:
    """An order, as the file has it. Article and buyer are not looked up."""

    number: int
    """Of the line in the file, from 1; where cells have line breaks, that of its first line."""
    order_no: str
    """1 to 64 letters, digits and ``- _ . /``."""
    customer_phone: str
    """11 digits."""
    sku: str
    quantity: int
    unit_price_minor: int
    """In minor units of CNY, from 0."""
    order_date: date
    remark: str
    """As it is typed."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """A line that is not taken, and the first column that is the reason."""

    number: int
    column: str
    """Its name in the template; empty where the line as a whole is wrong."""
    reason: str
    """For people, translated when it is shown."""
    code: str
    """Stable, one of ``refusals.LINES``."""
    order_no: str = ""
    """Empty where the line has none that can be taken."""


def rejection(*, number: int, column: str, code: str, order_no: str = "", **params: Any) -> Rejection:
    """Reject a line."""
    return Rejection(number, column, reason(code, **params), code, order_no)


def read(
    path: Path, *, filename: str, limits: Limits | None = None
) -> Generator[Line | Rejection, None, None]:
    """Return the lines that are not blank, in the order of the file.

    The whole file has been read when this returns: what follows is served from a temporary file. So memory
    is bounded, and an error in the last line stops the import before the first.

    :raises FileRefused: at once, for everything that concerns the whole file.
    """
    return begun(_items(path, filename, limits))


def begun(items: Generator[Any, None, None]) -> Generator[Any, None, None]:
    """Take the first item, an empty one, of a generator: its files are closed from now on, come what may."""
    next(items)
    return items


def _items(
    path: Path, filename: str, limits: Limits | None
) -> Generator[Line | Rejection | None, None, None]:
    with surveyed(path, filename=filename, limits=limits) as survey:
        yield None
        yield from survey.items()


@dataclass(frozen=True, slots=True)
class Survey:
    """A file that has been read as a whole."""

    columns: Mapping[int, str]
    """By place in the line, from 0."""
    merges: Merges
    occurrences: Occurrences
    spool: Spool

    def items(self) -> Iterator[Line | Rejection]:
        """Yield the lines, in the order of the file."""
        for number, values in self.spool:
            place = self.merges.place(number)
            yield _item(number, values) if place is None else _merged(number, values, self.columns[place])


@contextmanager
def surveyed(path: Path, *, filename: str, limits: Limits | None = None) -> Iterator[Survey]:
    """Read the whole file, and keep its lines at hand.

    :raises FileRefused: for everything that concerns the whole file.
    """
    limits = limits or Limits.from_settings()
    merges, occurrences = Merges(), Occurrences()
    with Spool() as spool:
        records = _records(path, filename, limits, merges)
        heads = headings(records)
        for record in _counted(records, limits):
            values = _checked(record, heads)
            content = spool.add(record.number, values)
            if order_no := _order_no(values):
                occurrences.add(order_no, number=record.number, content=content)
        merges.settle(heads.places.values())
        yield Survey({place: name for name, place in heads.places.items()}, merges, occurrences, spool)


def _records(path: Path, filename: str, limits: Limits, merges: Merges) -> Iterator[Record]:
    if kind_of(path, filename=filename, limits=limits) is Kind.XLSX:
        return records_of_workbook(path, limits=limits, merges=merges)
    return records_of_text(path, limits=limits)


def _counted(records: Iterator[Record], limits: Limits) -> Iterator[Record]:
    count = 0
    for count, record in enumerate(records, start=1):
        if count > limits.max_rows:
            raise refusal("too_many_rows", limit=limits.max_rows)
        yield record
    if not count:
        raise refusal("no_rows")


def _checked(record: Record, heads: Headings) -> list[Any]:
    """Return the values of a line; or column, code, parameters and order number of its rejection."""
    cells, places = record.cells, heads.places
    values: list[Any] = []
    column = "order_no"
    try:
        for column, check in CHECKS.items():
            place = places.get(column, len(cells))
            values.append(check(cells[place] if place < len(cells) else ""))
            if column == "order_no" and len(cells) > heads.gapless:
                _check_outside(cells, heads)
    except Unfit as unfit:
        blamed = "" if unfit.code == "cell_without_heading" else column
        return [blamed, unfit.code, unfit.params, values[0] if values else ""]
    return values


def _check_outside(cells: Sequence[Cell], heads: Headings) -> None:
    if any(place not in heads.named and not is_blank(cell) for place, cell in enumerate(cells)):
        raise Unfit("cell_without_heading")


def _order_no(values: list[Any]) -> str:
    order_no: str = values[0] if len(values) == len(CHECKS) else values[3]
    return order_no


def _item(number: int, values: list[Any]) -> Line | Rejection:
    if len(values) < len(CHECKS):
        column, code, params, order_no = values
        return rejection(number=number, column=column, code=code, order_no=order_no, **params)
    values[5] = date.fromisoformat(values[5])
    return Line(number, *values)


def _merged(number: int, values: list[Any], column: str) -> Rejection:
    return rejection(number=number, column=column, code="merged_cells", order_no=_order_no(values))
