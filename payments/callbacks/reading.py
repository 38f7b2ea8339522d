"""Reading what a provider has sent: each value is what it should be, or the event is malformed."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from typing import Any, Final

from idempotency.webhooks import MalformedEvent

LONGEST: Final = 64
"""Characters of a number by which a provider or the shop knows something."""


def json_object(text: bytes) -> dict[str, Any]:
    """Return a JSON object; its numbers are whole or decimal, never floats."""
    try:
        value = json.loads(text, parse_float=Decimal, parse_constant=_refuse)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise MalformedEvent("not JSON") from error
    if not isinstance(value, dict):
        raise MalformedEvent("no JSON object")
    return value


def child(data: Mapping[str, Any], *path: str) -> dict[str, Any]:
    """Return an object within an object."""
    value = _at(data, path)
    if not isinstance(value, dict):
        raise MalformedEvent(f"{'.'.join(path)} is no object")
    return value


def text(data: Mapping[str, Any], *path: str) -> str:
    """Return a name or number, which must be there."""
    if not (value := optional_text(data, *path)):
        raise MalformedEvent(f"{'.'.join(path)} is missing")
    return value


def optional_text(data: Mapping[str, Any], *path: str) -> str:
    """Return a name or number, or an empty string."""
    value = _at(data, path)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > LONGEST or not value.isprintable():
        raise MalformedEvent(f"{'.'.join(path)} is no name or number")
    return value


def whole_number(data: Mapping[str, Any], *path: str) -> int:
    """Return a whole number that is not negative."""
    value = _at(data, path)
    if type(value) is not int or not 0 <= value < 2**63:
        raise MalformedEvent(f"{'.'.join(path)} is no whole number")
    return value


def unix_time(data: Mapping[str, Any], *path: str) -> datetime:
    """Return an instant that is told in seconds since 1970."""
    try:
        return datetime.fromtimestamp(whole_number(data, *path), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise MalformedEvent(f"{'.'.join(path)} is no time") from error


def optional_time(data: Mapping[str, Any], *path: str, zone: tzinfo | None = None) -> datetime | None:
    """Return an instant that is spelled as ISO 8601, or ``None``; ``zone`` is that of a time without one."""
    if not (spelled := optional_text(data, *path)):
        return None
    try:
        moment = datetime.fromisoformat(spelled)
    except ValueError as error:
        raise MalformedEvent(f"{'.'.join(path)} is no time") from error
    if moment.tzinfo is None and zone is None:
        raise MalformedEvent(f"{'.'.join(path)} has no zone")
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _at(data: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        data = data.get(name) if isinstance(data, dict) else None
    return data
