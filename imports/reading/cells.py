"""What a reader found in a line: its cells, as they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

BLANKS: Final = "".join(
    (
        " \t\r\n\v\f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000",
        "".join(map(chr, range(0x2000, 0x200E))),
        "\u2060\ufeff",
    )
)
"""White space of any width, and none."""


@dataclass(frozen=True, slots=True)
class Number:
    """A numeric cell of a workbook."""

    text: str
    """As the file has it: ``19.899999999999999``, ``1.38E+10``."""
    shown: str
    """The number format, such as ``General``, ``000000`` or ``yyyy-mm-dd``."""
    since_1904: bool = False
    """Whether days are counted from 1904."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A cell without a value."""

    code: str


Cell: TypeAlias = str | Number | Broken


@dataclass(frozen=True, slots=True)
class Record:
    """A line that is not blank."""

    number: int
    """Of the line in the file, from 1; where cells have line breaks, that of its first line."""
    cells: Sequence[Cell]


def trimmed(text: str) -> str:
    """Return the text without outer blanks."""
    return text.strip(BLANKS)


def is_blank(cell: Cell) -> bool:
    """Whether nothing is seen there."""
    return isinstance(cell, str) and not trimmed(cell)
