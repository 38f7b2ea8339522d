"""Lines of workbooks, read from the sheet's XML as it is unpacked."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from .cells import Broken, Cell, Record, is_blank
from .limits import Limits
from .markup import DEEPEST, Attributes, pieces
from .merges import Merges
from .packages import opened
from .refusals import refusal
from .workbooks import Workbook, described, pick, unescaped

NAMESPACES: Final = (
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
    "http://purl.oclc.org/ooxml/spreadsheetml/main",
)
TAGS: Final = {
    f"{namespace} {name}": name
    for namespace in NAMESPACES
    for name in ("row", "c", "v", "t", "f", "rPh", "mergeCell")
}

LAST_ROW: Final = 1_048_576
_REFERENCE: Final = re.compile(r"([A-Z]{1,3})[0-9]{1,7}")


def records(path: Path, *, limits: Limits, merges: Merges) -> Iterator[Record]:
    """Yield the lines of the first visible sheet that are not blank, in bounded memory.

    What is merged over lines stands behind the lines: it is put into ``merges``, which are complete when
    the last line was yielded.

    :raises FileRefused: for anything but a plain workbook within the limits.
    """
    with opened(path, limits=limits) as package:
        workbook = described(package, limits=limits)
        sheet = _Sheet(workbook, limits, merges)
        for _piece in pieces(
            package.chunks(workbook.sheet), start=sheet.start, end=sheet.end, text=sheet.text
        ):
            yield from sheet.lines
            sheet.lines.clear()


class _Sheet:
    """Listens to the parser, and collects the lines that are complete."""

    __slots__ = (
        "_attributes",
        "_cells",
        "_depth",
        "_has_formula",
        "_limits",
        "_listening",
        "_merges",
        "_place",
        "_places",
        "_row",
        "_skipping",
        "_text",
        "_workbook",
        "lines",
    )

    def __init__(self, workbook: Workbook, limits: Limits, merges: Merges) -> None:
        self._workbook = workbook
        self._limits = limits
        self._merges = merges
        self._places: dict[str, int] = {}
        self._row = self._depth = 0
        self._listening = self._skipping = False
        self.lines: list[Record] = []
        self._begin_row({})
        self._row = 0
        self._begin_cell({})

    def start(self, name: str, attributes: Attributes) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise refusal("unreadable")
        tag = TAGS.get(name)
        if tag == "c":
            self._begin_cell(attributes)
        elif tag == "v" or tag == "t":
            self._listening = not self._skipping
        elif tag is not None:
            self._begin_other(tag, attributes)

    def end(self, name: str) -> None:
        self._depth -= 1
        tag = TAGS.get(name)
        if tag == "v" or tag == "t":
            self._listening = False
        elif tag == "c":
            self._end_cell()
        elif tag == "row":
            self._end_row()
        elif tag == "rPh":
            self._skipping = False

    def text(self, text: str) -> None:
        if self._listening:
            self._text += text
            if len(self._text) > self._limits.max_cell:
                raise refusal("cell_too_long", line=self._row, limit=self._limits.max_cell)

    def _begin_other(self, tag: str, attributes: Attributes) -> None:
        match tag:
            case "row":
                self._begin_row(attributes)
            case "f":
                self._has_formula = True
            case "rPh":
                self._skipping = True
            case "mergeCell":
                self._merges.add(attributes.get("ref", ""))

    def _begin_row(self, attributes: Attributes) -> None:
        given = attributes.get("r")
        number = self._row + 1 if given is None else _row_number(given)
        if not self._row < number <= LAST_ROW:  # a number that comes again would name another line
            raise refusal("unreadable")
        self._row = number
        self._cells: list[Cell] = []
        self._place = -1

    def _begin_cell(self, attributes: Attributes) -> None:
        self._attributes = attributes
        self._text = ""
        self._has_formula = False

    def _end_cell(self) -> None:
        attributes = self._attributes
        place = self._place_of(attributes.get("r"))
        cell = self._cell(attributes.get("t", "n"), attributes.get("s"))
        if cell == "":
            self._place = place
            return
        if place >= self._limits.max_columns:
            raise refusal("too_many_columns", line=self._row, limit=self._limits.max_columns)
        cells = self._cells
        while len(cells) < place:
            cells.append("")
        cells.append(cell)
        self._place = place

    def _place_of(self, reference: str | None) -> int:
        """Return the place of the cell in its line, from 0; never one that has a cell already."""
        if reference is None:
            return self._place + 1
        letters = reference.rstrip("0123456789")
        place = self._places.get(letters)
        if place is None:
            place = self._places[letters] = _place(reference)
        if place <= self._place:
            raise refusal("unreadable")
        return place

    def _cell(self, kind: str, style: str | None) -> Cell:
        text = self._text
        if kind == "inlineStr" or kind == "str":
            return unescaped(text)
        if kind == "e":
            return Broken("error_value")
        if not text:
            return Broken("formula_without_value") if self._has_formula else ""
        return KINDS.get(kind, _unreadable)(self._workbook, text, style)

    def _end_row(self) -> None:
        if not all(map(is_blank, self._cells)):
            self.lines.append(Record(self._row, self._cells))


def _shared(workbook: Workbook, text: str, _style: str | None) -> Cell:
    return pick(workbook.strings, text)


def _unreadable(_workbook: Workbook, _text: str, _style: str | None) -> Cell:
    raise refusal("unreadable")


KINDS: Final[dict[str, Callable[[Workbook, str, str | None], Cell]]] = {
    "n": Workbook.number,
    "s": _shared,
    "b": lambda _workbook, text, _style: "TRUE" if text == "1" else "FALSE",
    "d": lambda _workbook, text, _style: text.partition("T")[0],
}


def _row_number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 7 else 0


def _place(reference: str) -> int:
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        raise refusal("unreadable")
    place = 0
    for letter in match[1]:
        place = place * 26 + ord(letter) - 64
    return place - 1
