"""What a workbook says before its sheet: which sheet, which formats, which texts."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from .cells import Number
from .formats import BUILT_IN, GENERAL, UNKNOWN
from .limits import Limits
from .markup import Attributes, Depth, elements, local, parse
from .packages import Package
from .refusals import refusal

LONGEST_DESCRIPTION: Final = 16 * 1024 * 1024
"""Bytes of each part that describes others, when it is unpacked."""

_ESCAPED: Final = re.compile("_x([0-9A-Fa-f]{4})_")


@dataclass(frozen=True, kw_only=True)
class Workbook:
    """What the cells of the sheet refer to."""

    sheet: str
    """The part that holds the first visible sheet. Others are not read."""
    formats: Sequence[str]
    """Number formats by the style of a cell."""
    strings: Sequence[str]
    """Texts by number."""
    since_1904: bool

    def number(self, text: str, style: str | None) -> Number:
        """Return a numeric cell.

        :raises FileRefused: ``unreadable``, for a style that is not there.
        """
        if style is None:
            return Number(text, self.formats[0] if self.formats else GENERAL, self.since_1904)
        return Number(text, pick(self.formats, style), self.since_1904)


def pick(items: Sequence[str], number: str) -> str:
    """Return the item of this number.

    :raises FileRefused: ``unreadable``, when there is none.
    """
    if not (number.isascii() and number.isdigit() and len(number) < 9 and int(number) < len(items)):
        raise refusal("unreadable")
    return items[int(number)]


def described(package: Package, *, limits: Limits) -> Workbook:
    """Read all parts but the sheet.

    :raises FileRefused: when they do not hold together, or are too large.
    """
    main = _main_part(package)
    related = _related(package, main)
    by_kind = dict(related.values())
    visible, since_1904 = _sheets(package, main)
    return Workbook(
        sheet=_first_worksheet(package, [related.get(name, ("", "")) for name in visible]),
        formats=_formats(package, by_kind.get("styles")),
        strings=_strings(package, by_kind.get("sharedStrings"), limits),
        since_1904=since_1904,
    )


def _main_part(package: Package) -> str:
    for kind, target in _related(package, "").values():
        if kind == "officeDocument":
            return target
    raise refusal("unreadable")


def _related(package: Package, part: str) -> dict[str, tuple[str, str]]:
    """Return kind and target of each part that this one refers to, by the name of the reference."""
    folder, name = posixpath.split(part)
    relations = posixpath.join(folder, "_rels", f"{name}.rels")
    return {
        relation.get("Id", ""): (
            posixpath.basename(relation.get("Type", "")),
            posixpath.normpath(posixpath.join("/", folder, relation.get("Target", ""))).lstrip("/"),
        )
        for _name, relation in elements(_description(package, relations), "Relationship")
    }


def _description(package: Package, part: str) -> Iterator[bytes]:
    if part not in package.names or package.size(part) > LONGEST_DESCRIPTION:
        raise refusal("unreadable")
    return package.chunks(part)


def _sheets(package: Package, main: str) -> tuple[list[str], bool]:
    """Return the references to the visible sheets, and whether days are counted from 1904."""
    since_1904, visible = False, []
    for name, attributes in elements(_description(package, main), "workbookPr", "sheet"):
        if name == "workbookPr":
            since_1904 = attributes.get("date1904") in ("1", "true")
        elif attributes.get("state", "visible") == "visible":
            visible.append(attributes.get("id", ""))
    return visible, since_1904


def _first_worksheet(package: Package, sheets: Iterable[tuple[str, str]]) -> str:
    """Return the first sheet that is no chart."""
    kind, target = next((sheet for sheet in sheets if sheet[0] != "chartsheet"), ("", ""))
    if kind != "worksheet" or target not in package.names:
        raise refusal("unreadable")
    return target


def _formats(package: Package, part: str | None) -> list[str]:
    if part is None or part not in package.names:
        return []
    own: dict[str, str] = {}
    formats: list[str] = []
    is_cells = False
    for name, attributes in elements(
        _description(package, part), "numFmt", "cellStyleXfs", "cellXfs", "cellStyles", "dxfs", "xf"
    ):
        is_cells = name == "cellXfs" or (is_cells and name == "xf")
        if name == "numFmt":
            own[attributes.get("numFmtId", "")] = attributes.get("formatCode", "")
        elif name == "xf" and is_cells:
            formats.append(_format(attributes.get("numFmtId", "0"), own))
    return formats


def _format(number: str, own: dict[str, str]) -> str:
    if number in own:
        return own[number]
    if not (number.isascii() and number.isdigit() and len(number) < 9):
        return UNKNOWN
    return BUILT_IN.get(int(number), UNKNOWN)


def _strings(package: Package, part: str | None, limits: Limits) -> list[str]:
    if part is None or part not in package.names:
        return []
    if package.size(part) > limits.max_strings_bytes:
        raise refusal("too_many_strings")
    strings = _Strings(limits)
    strings.read(package.chunks(part))
    return strings.found


class _Strings:
    """The texts that cells share; their pronunciation is left out."""

    def __init__(self, limits: Limits) -> None:
        self.found: list[str] = []
        self._limits = limits
        self._depth = Depth()
        self._text: list[str] = []
        self._skipping = False
        self._in_text = False

    def read(self, chunks: Iterable[bytes]) -> None:
        parse(chunks, start=self._start, end=self._end, text=self._add)

    def _start(self, name: str, _attributes: Attributes) -> None:
        self._depth.enter()
        match local(name):
            case "t":
                self._in_text = not self._skipping
            case "rPh":
                self._skipping = True

    def _end(self, name: str) -> None:
        self._depth.leave(name)
        match local(name):
            case "t":
                self._in_text = False
            case "rPh":
                self._skipping = False
            case "si":
                self._keep()

    def _add(self, text: str) -> None:
        if self._in_text:
            self._text.append(text)

    def _keep(self) -> None:
        if len(self.found) >= self._limits.max_strings:
            raise refusal("too_many_strings")
        self.found.append(unescaped("".join(self._text)))
        self._text.clear()


def unescaped(text: str) -> str:
    """Return the text with the characters that XML cannot hold: workbooks write them as ``_x000D_``."""
    if "_x" not in text:
        return text
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
