"""Reading what a provider has sent: each value is what it should be, or the event is malformed."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from typing import Any, Final

from idempotency.webhooks import MalformedEvent

LONGEST: Final = 64
"""Characters of a number by which a provider or the shop knows something."""

LARGEST: Final = 2**62
"""Two amounts below it can be added in a database."""

EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC)

CURRENCY: Final = re.compile("[A-Za-z]{3}")


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


def whole_number(data: Mapping[str, Any], *path: str, least: int = 0) -> int:
    """Return a whole number, such as an amount in minor units."""
    value = _at(data, path)
    if type(value) is not int or not least <= value < LARGEST:
        raise MalformedEvent(f"{'.'.join(path)} is no whole number, or too small or too large")
    return value


def currency(data: Mapping[str, Any], *path: str) -> str:
    """Return the code of a currency in capitals, which must be there."""
    if not (code := optional_currency(data, *path)):
        raise MalformedEvent(f"{'.'.join(path)} is missing")
    return code


def optional_currency(data: Mapping[str, Any], *path: str) -> str:
    """Return the code of a currency in capitals, or an empty string."""
    code = optional_text(data, *path)
    if code and not CURRENCY.fullmatch(code):
        raise MalformedEvent(f"{'.'.join(path)} is no currency")
    return code.upper()


def unix_time(data: Mapping[str, Any], *path: str) -> datetime:
    """Return an instant that is told in seconds since 1970."""
    try:
        moment = datetime.fromtimestamp(whole_number(data, *path), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise MalformedEvent(f"{'.'.join(path)} is no time") from error
    return _plausible(moment, path)


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
    return _plausible(moment if moment.tzinfo else moment.replace(tzinfo=zone), path)


def _plausible(moment: datetime, path: tuple[str, ...]) -> datetime:
    """Refuse an instant that is none of a payment, and that no local time can spell.

    It is returned in UTC: not every database takes every zone.
    """
    if not EARLIEST <= moment < LATEST:
        raise MalformedEvent(f"{'.'.join(path)} is no time of a payment")
    return moment.astimezone(UTC)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _at(data: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        data = data.get(name) if isinstance(data, dict) else None
    return data
