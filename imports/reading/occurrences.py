"""Where each order number occurs in one file, and whether with one content."""

from array import array
from hashlib import blake2b
from itertools import islice
from typing import Final

NAMED: Final = 5
"""Other lines that are named to people."""

SIZE: Final = 16
"""Bytes that stand for a number or a content: for 300,000 lines some 50 MB in all."""


class Occurrences:
    """Remembers digests, not texts."""

    def __init__(self) -> None:
        self._places: dict[bytes, int] = {}
        self._firsts = array("I")
        self._contents = bytearray()
        self._others: dict[int, array[int]] = {}
        self._contradicting: set[int] = set()

    def add(self, order_no: str, *, number: int, content: str) -> None:
        """Note that the line ``number`` has this order number and this content."""
        digest = _digest(content)
        place = self._places.setdefault(_digest(order_no), len(self._firsts))
        if place == len(self._firsts):
            self._firsts.append(number)
            self._contents += digest
            return
        self._others.setdefault(place, array("I")).append(number)
        if self._contents[place * SIZE : (place + 1) * SIZE] != digest:
            self._contradicting.add(place)

    def first(self, order_no: str) -> int:
        """Return the line where the number comes first."""
        return self._firsts[self._place(order_no)]

    def contradicting(self, order_no: str, *, number: int) -> list[int]:
        """Return some of the other lines of this number, if not all have one content; else none."""
        place = self._place(order_no)
        if place not in self._contradicting:
            return []
        lines = (self._firsts[place], *islice(self._others[place], NAMED))
        return [line for line in lines if line != number][:NAMED]

    def _place(self, order_no: str) -> int:
        return self._places[_digest(order_no)]


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=SIZE).digest()
