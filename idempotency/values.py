"""The nouns that travel between the adapters, the engine and the claims."""

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from hashlib import blake2b
from typing import Any, Final

TYPE: Final = "__type__"


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One intended effect: attempted often, happens once."""

    name: str
    """A stable name, such as ``orders.create``: stored data, so renaming it forgets the outcomes."""

    scope: str
    """Whose key it is. Keys of two scopes never meet."""

    key: str
    """The caller's or the domain's name for this effect."""

    fingerprint: bytes | None = None
    """A digest of what was asked, compared with the first one's; ``None`` compares nothing."""

    label: str = ""
    """The key as people know it."""

    @cached_property
    def id(self) -> uuid.UUID:
        """The record's primary key: a digest, so length, case and collation of the key never matter.

        Made a valid UUID, since MariaDB's ``uuid`` type refuses or mangles anything else.
        """
        digest = blake2b(digest_size=16)
        for part in (self.name, self.scope, self.key):
            encoded = part.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "big") + encoded)  # ("a", "bc") is not ("ab", "c")
        return uuid.UUID(bytes=digest.digest(), version=5)

    def __str__(self) -> str:
        """For logs: never the whole key."""
        return f"{self.name} {self.key[: min(8, len(self.key) // 2)]}… ({self.id})"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What the operation answered: an HTTP answer, or (with no status) a value."""

    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    """The bytes as the view rendered them; ``None`` where they were over the limit."""

    @classmethod
    def of(cls, value: Any) -> "Outcome":
        """Keep a value.

        :raises TypeError: when the value has no form in JSON; return data, not objects.
        :raises ValueError: when it holds a NaN or an infinity.
        """
        return cls(body=dumps(value).encode())

    @property
    def value(self) -> Any:
        """The value that was kept by :meth:`of`; tuples have become lists."""
        return loads(self.body or b"null")


@dataclass(frozen=True, kw_only=True)
class Run:
    """How a call of the engine ended."""

    value: Any
    """What the handler returned now; ``None`` for a replay."""

    outcome: Outcome | None
    """What is kept; ``None`` where the answer was not worth keeping and all was rolled back."""

    replayed: bool
    """Whether the outcome is an earlier one, and the handler did not run."""

    @property
    def replay(self) -> Outcome | None:
        """The earlier outcome to answer with, where this is a replay."""
        return self.outcome if self.replayed else None


def dumps(value: Any) -> str:
    """Write a value as JSON, with decimals, dates, times, spans and UUIDs.

    :raises TypeError: when it has no form there.
    :raises ValueError: when it holds a NaN or an infinity.
    """
    return json.dumps(_pack(value), ensure_ascii=False, allow_nan=False)


def loads(text: str | bytes) -> Any:
    """Read what :func:`dumps` wrote; tuples have become lists."""
    return json.loads(text, object_hook=_unpack)


def plain(value: Any) -> Any:
    """Return the value as a repeat would get it."""
    return loads(dumps(value))


_TYPES: Final[dict[str, tuple[type, Callable[[Any], str], Callable[[str], Any]]]] = {
    "decimal": (Decimal, str, Decimal),
    "datetime": (datetime, datetime.isoformat, datetime.fromisoformat),  # before date: it is one
    "date": (date, date.isoformat, date.fromisoformat),
    "time": (time, time.isoformat, time.fromisoformat),
    "timedelta": (
        timedelta,
        lambda span: str(span // timedelta(microseconds=1)),
        lambda text: timedelta(microseconds=int(text)),
    ),
    "uuid": (uuid.UUID, str, uuid.UUID),
}


def _pack(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_pack(item) for item in value]
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        packed = {name: _pack(item) for name, item in value.items()}
        return {TYPE: "dict", "value": list(packed.items())} if TYPE in packed else packed
    for name, (kind, dump, _) in _TYPES.items():
        if isinstance(value, kind):
            return {TYPE: name, "value": dump(value)}
    raise TypeError(
        f"An outcome is kept as JSON, and {type(value).__name__} has no form there: "
        "return plain data, with strings as the keys of a dict."
    )


def _unpack(value: dict[str, Any]) -> Any:
    if TYPE not in value:
        return value
    load: Callable[[Any], Any] = dict if value[TYPE] == "dict" else _TYPES[value[TYPE]][2]
    return load(value["value"])
