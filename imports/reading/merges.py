"""Cells that are merged over several lines."""

import re
from bisect import bisect_right
from collections.abc import Collection
from typing import Final

from .refusals import refusal

MOST: Final = 100_000
"""Merged ranges of one sheet."""

_RANGE: Final = re.compile(r"\$?([A-Z]{1,3})\$?([0-9]{1,7})(?::\$?([A-Z]{1,3})\$?([0-9]{1,7}))?")


class Merges:
    """Which lines share a cell with another one."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int, int, int]] = []
        self._starts: list[int] = []
        self._reached: list[tuple[int, int]] = []

    def add(self, reference: str) -> None:
        """Take in a range such as ``A2:A4``; one within a line hides nothing and is left out.

        :raises FileRefused: ``unreadable``, when it is none, or one too many.
        """
        match = _RANGE.fullmatch(reference)
        if match is None or len(self._ranges) >= MOST:
            raise refusal("unreadable")
        first, last = int(match[2]), int(match[4] or match[2])
        if first < last:
            left = column_number(match[1])
            self._ranges.append((first, last, left, column_number(match[3] or match[1])))

    def settle(self, places: Collection[int]) -> None:
        """Keep what covers these places of a line, counted from 0, ready to be asked."""
        ranges = sorted(
            (first, last, _covered(left, right, places)) for first, last, left, right in self._ranges
        )
        reach, place = 0, 0
        for first, last, covered in ranges:
            if covered is None:
                continue
            if last > reach:
                reach, place = last, covered
            self._starts.append(first)
            self._reached.append((reach, place))

    def place(self, number: int) -> int | None:
        """Return the place of a cell that the line shares with other lines, if there is one."""
        before = bisect_right(self._starts, number)
        if not before:
            return None
        reach, place = self._reached[before - 1]
        return place if number <= reach else None


def _covered(left: int, right: int, places: Collection[int]) -> int | None:
    return min((place for place in places if left <= place <= right), default=None)


def column_number(letters: str) -> int:
    """Return the place of a column, from 0: ``A`` is 0, ``AA`` 26."""
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number - 1
