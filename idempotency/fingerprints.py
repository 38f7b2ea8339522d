"""Digests of what was asked: equal when the request means the same, whatever its spelling.

A fingerprint is 16 bytes, compared with the first request's and never part of the key.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from hashlib import blake2b
from typing import Any, Protocol
from uuid import UUID

SIZE = 16


class Digest(Protocol):
    """The part of a ``hashlib`` object that is used here."""

    def update(self, data: bytes, /) -> None: ...
    def digest(self) -> bytes: ...


class Chunked(Protocol):
    """An uploaded file: Django's ``File`` is one."""

    def chunks(self) -> Iterator[bytes]: ...
    def seek(self, offset: int, /) -> Any: ...


def new(kind: str) -> Digest:
    """Start a digest; two kinds of content never meet."""
    return blake2b(digest_size=SIZE, person=kind.encode())


def of_value(value: Any, *, ignored: Iterable[str] = ()) -> bytes:
    """Digest plain data by value: 1 equals 1.0, key order does not count, null is not absent.

    ``ignored`` names members to leave out, by dots: ``client.sent_at``.

    :raises TypeError: when the value holds something else than JSON has, dates, times, spans and UUIDs.
    """
    digest = new("json")
    for part in _canonical(_without(value, [path.split(".") for path in ignored])):
        digest.update(part.encode("utf-8", "surrogatepass"))
    return digest.digest()


def of_json(text: bytes, *, charset: str = "utf-8", ignored: Iterable[str] = ()) -> bytes:
    """Digest a JSON text by value, its numbers exactly; a text that is not JSON by its bytes."""
    try:
        return of_value(_decoder.decode(text.decode(charset)), ignored=ignored)
    except (
        ValueError,
        LookupError,
        ArithmeticError,
        RecursionError,
    ):  # the view will give its own answer to it
        return of_bytes([text])


def of_bytes(chunks: Iterable[bytes]) -> bytes:
    """Digest content by its bytes."""
    digest = new("bytes")
    for chunk in chunks:
        digest.update(chunk)
    return digest.digest()


def of_fields(
    fields: Mapping[str, Sequence[str]],
    files: Mapping[str, Sequence[Chunked]],
    *,
    ignored: Iterable[str] = (),
) -> bytes:
    """Digest a form by its fields and the content of its files; their order and the boundary do not count.

    Each file is read in chunks and left at its start.
    """
    kept = {name: fields[name] for name in fields.keys() - set(ignored)}
    hashed = {name: [_of_file(file).hex() for file in files[name]] for name in files.keys() - set(ignored)}
    return of_value([kept, hashed])


def combine(*parts: bytes) -> bytes:
    """Digest several fingerprints into one."""
    return of_bytes(parts)


def _of_file(file: Chunked) -> bytes:
    digest = of_bytes(file.chunks())
    file.seek(0)  # the view reads from the start
    return digest


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_decoder = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse)


def _without(value: Any, paths: list[list[str]]) -> Any:
    if paths and isinstance(value, list):
        return [_without(item, paths) for item in value]
    if not paths or not isinstance(value, dict):
        return value
    here = {path[0] for path in paths if len(path) == 1}
    return {
        name: _without(item, [path[1:] for path in paths if path[0] == name and len(path) > 1])
        for name, item in value.items()
        if name not in here
    }


def _canonical(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield "{"
        for name in sorted(value):
            yield f"{len(name)}:{name}="
            yield from _canonical(value[name])
        yield "}"
    elif isinstance(value, list | tuple):
        yield "["
        for item in value:
            yield from _canonical(item)
            yield ","
        yield "]"
    else:
        yield _scalar(value)


def _scalar(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return f"{len(value)}:{value}"
    if isinstance(value, int | float | Decimal):
        return _number(Decimal(repr(value)) if isinstance(value, float) else Decimal(value))
    if isinstance(value, date | time | timedelta | UUID):  # a datetime is a date
        return f"{type(value).__name__}:{value}"
    raise TypeError(f"{type(value).__name__} has no form in JSON: take the fingerprint of plain data.")


def _number(value: Decimal) -> str:
    """Spell a number in one way; ``Decimal.normalize`` would round it to the context's precision."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise TypeError(f"{value} has no form in JSON")
    text = "".join(map(str, digits))
    coefficient = text.rstrip("0").lstrip("0")
    if not coefficient:
        return "0"
    return f"{'-' * sign}{coefficient}e{exponent + len(text) - len(text.rstrip('0'))}"
