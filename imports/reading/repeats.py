"""Order numbers that come again within one file."""

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from .limits import Limits
from .lines import Line, Rejection, Survey, begun, rejection, surveyed


@dataclass(frozen=True, slots=True)
class Repeat:
    """A line that equals an earlier one in all its columns: it is skipped."""

    number: int
    order_no: str
    first_number: int


def read_checked(
    path: Path, *, filename: str, limits: Limits | None = None
) -> Generator[Line | Rejection | Repeat, None, None]:
    """Return the lines that are not blank, in the order of the file, each order number at most once.

    Lines with one order number and other content are all rejected; of equal ones the first counts, others
    are repeats. Lines that are rejected for reasons of their own count as other content: it is not sure
    which of the lines was meant.

    :raises FileRefused: at once, for everything that concerns the whole file.
    """
    return begun(_items(path, filename, limits))


def _items(
    path: Path, filename: str, limits: Limits | None
) -> Generator[Line | Rejection | Repeat | None, None, None]:
    with surveyed(path, filename=filename, limits=limits) as survey:
        yield None
        for item in survey.items():
            yield item if isinstance(item, Rejection) else _judged(item, survey)


def _judged(line: Line, survey: Survey) -> Line | Rejection | Repeat:
    occurrences, number = survey.occurrences, line.number
    if others := occurrences.contradicting(line.order_no, number=number):
        return _rejected(line, "contradicting", others=", ".join(map(str, others)))
    first = occurrences.first(line.order_no)
    if first == number:
        return line
    if survey.merges.place(first) is not None:
        return _rejected(line, "contradicting", others=str(first))
    return Repeat(number, line.order_no, first)


def _rejected(line: Line, code: str, **params: str) -> Rejection:
    return rejection(number=line.number, column="order_no", code=code, order_no=line.order_no, **params)
