"""XML of strangers: read in pieces, without entities, with bounded depth and length."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final
from xml.parsers import expat

from .refusals import refusal

DEEPEST: Final = 64
"""Elements inside one another; a workbook needs a dozen."""

FINAL: Final = True

LONGEST_TAG: Final = 1024 * 1024
"""Bytes of one tag with its attributes, which the parser keeps in memory."""

Attributes = dict[str, str]
Start = Callable[[str, Attributes], None]


def parse(
    chunks: Iterable[bytes],
    *,
    start: Start,
    end: Callable[[str], None] | None = None,
    text: Callable[[str], None] | None = None,
) -> None:
    """Call back for each element and text; names have their namespace before a blank.

    ``start`` and ``end`` are called for a depth that the caller has to bound, see :data:`DEEPEST`.

    :raises FileRefused: ``external_entities`` for any document type definition, else ``unreadable``.
    """
    for _piece in pieces(chunks, start=start, end=end, text=text):
        pass


def pieces(
    chunks: Iterable[bytes],
    *,
    start: Start,
    end: Callable[[str], None] | None = None,
    text: Callable[[str], None] | None = None,
) -> Iterator[None]:
    """Do what :func:`parse` does, and stop after each chunk."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = _refuse_definitions
    size = 0
    try:
        for chunk in chunks:
            parser.Parse(chunk)
            size += len(chunk)
            if size - parser.CurrentByteIndex > LONGEST_TAG:
                raise refusal("unreadable")
            yield
        parser.Parse(b"", FINAL)
    except expat.ExpatError as error:
        raise refusal("unreadable") from error
    yield


def _refuse_definitions(*_args: object) -> None:
    raise refusal("external_entities")


def elements(chunks: Iterable[bytes], *names: str) -> Iterator[tuple[str, Attributes]]:
    """Yield the elements of these local names with their attributes, by local names too."""
    found: list[tuple[str, Attributes]] = []
    depth = Depth()

    def start(name: str, attributes: Attributes) -> None:
        depth.enter()
        if local(name) in names:
            found.append((local(name), {local(key): value for key, value in attributes.items()}))

    for _piece in pieces(chunks, start=start, end=depth.leave):
        yield from found
        found.clear()


class Depth:
    """How many elements are open."""

    def __init__(self) -> None:
        self._depth = 0

    def enter(self) -> None:
        """Count an element.

        :raises FileRefused: ``unreadable``, when too many are inside one another.
        """
        self._depth += 1
        if self._depth > DEEPEST:
            raise refusal("unreadable")

    def leave(self, _name: str) -> None:
        """Count its end."""
        self._depth -= 1


def local(name: str) -> str:
    """Return a name without its namespace."""
    return name.rpartition(" ")[2]
