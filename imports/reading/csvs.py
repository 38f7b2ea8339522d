"""Lines of text files."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self, TextIO

from .cells import Record, is_blank
from .clocks import Deadline
from .columns import known
from .encodings import encoding_of
from .limits import Limits
from .refusals import refusal

DELIMITERS: Final = ",;\t"

LONGEST_RECORD: Final = 1024 * 1024
"""Characters of a line, or of several that quotes hold together: little memory, and more than orders need."""


def records(path: Path, *, limits: Limits) -> Iterator[Record]:
    """Yield the lines that are not blank, in bounded memory.

    Lines end in CR, LF or both; a heading line tells whether cells are parted by comma, semicolon or tab.

    :raises FileRefused: for an unknown encoding, quotes that do not pair up, and lines or cells too long.
    """
    with path.open(encoding=encoding_of(path), newline="") as file:
        delimiter = delimiter_of(file.readline(LONGEST_RECORD))
        file.seek(0)
        yield from _records(file, delimiter, limits)


def delimiter_of(heading: str) -> str:
    """Return what parts the most headings that are known; the comma, when none does."""
    return max(DELIMITERS, key=lambda delimiter: len(known(heading.split(delimiter))))


def _records(file: TextIO, delimiter: str, limits: Limits) -> Iterator[Record]:
    lines = _Lines(file, Deadline(limits.max_seconds))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        number = lines.begin_record()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise _broken(error, number, limits) from error
        _check(cells, number, limits)
        if not all(map(is_blank, cells)):
            yield Record(number, cells)


class _Lines:
    """The lines of the file, each with its end; they may be as long as a record."""

    def __init__(self, file: TextIO, deadline: Deadline) -> None:
        self._file = file
        self._deadline = deadline
        self._count = 0
        self.begin_record()

    def begin_record(self) -> int:
        """Return the number of the line in which the next record begins."""
        self._first = self._count + 1
        self._length = 0
        return self._first

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        self._deadline.check()
        line = self._file.readline(LONGEST_RECORD)
        if not line:
            raise StopIteration
        self._count += 1
        self._length += len(line)
        if self._length >= LONGEST_RECORD:
            raise refusal("line_too_long", line=self._first, limit=LONGEST_RECORD)
        return line


def _check(cells: list[str], number: int, limits: Limits) -> None:
    if len(cells) > limits.max_columns:
        raise refusal("too_many_columns", line=number, limit=limits.max_columns)
    if any(len(cell) > limits.max_cell for cell in cells):
        raise refusal("cell_too_long", line=number, limit=limits.max_cell)


def _broken(error: csv.Error, number: int, limits: Limits) -> Exception:
    if "field limit" in str(error):
        return refusal("cell_too_long", line=number, limit=limits.max_cell)
    return refusal("unpaired_quotes", line=number)
