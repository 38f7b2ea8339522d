"""The gate in front of a sale: counts in Redis, and turns most of a crowd away before the database.

    repeat? ──► pass      another ticket of this user? ──► refused      units left? ──► one less, pass
       │no                        │no                                      │no ──► refused
       └──────────────────────────┘

An aid that never decides: behind it the database takes each unit by a conditional update. Without a gate, or
with one that fails, is slow, or has forgotten, everybody passes to the database. Raises nothing for that.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from secrets import token_hex
from typing import Any, Final, TypeVar

from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from idempotency.breakers import Breaker, breaker

from . import scripts
from .models import FlashSale

T = TypeVar("T")

ERRORS: Final = (RedisError, OSError)

REFRESH: Final = timedelta(seconds=1)
"""Between two loads that requests ask for: a crowd without a gate makes one of them load it."""

MICROSECOND: Final = timedelta(microseconds=1)
EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


class Verdict(StrEnum):
    """What the gate says to a request."""

    ADMITTED = "admitted"
    """One unit is set aside for it."""

    REPEAT = "repeat"
    """The user was let in under this key before."""

    ALREADY_BOUGHT = "already_bought"
    NOT_BEGUN = "not_begun"
    SOLD_OUT = "sold_out"

    UNDECIDED = "undecided"
    """The user's request under another key is at work: the database will tell which came first."""

    MISSING = "missing"
    """There is no gate for the article: ask the database."""

    UNKNOWN = "unknown"
    """No answer came: ask the database. The request may have been let in."""


@dataclass(frozen=True, kw_only=True)
class Pass:
    """One request at the gate."""

    sku: str
    user_id: int
    mark: str
    verdict: Verdict
    token: str


def is_on() -> bool:
    """Tell whether there is a gate at all."""
    return bool(settings.FLASH_GATE_URL)


def admit(*, sku: str, user_id: int, mark: str) -> Pass:
    """Ask whether a user may try to buy; ``mark`` is the digest of the key."""
    token = token_hex(8)
    verdict = _run(scripts.ADMIT, sku, user_id, mark, token, otherwise=Verdict.UNKNOWN)
    return Pass(sku=sku, user_id=user_id, mark=mark, verdict=Verdict(verdict), token=token)


def give_back(admitted: Pass) -> None:
    """Undo an admission that led to nothing. Once, however often it is called."""
    _run(scripts.GIVE_BACK, admitted.sku, admitted.user_id, admitted.mark, admitted.token, otherwise=0)


def record(*, sale: FlashSale, user_id: int, mark: str, holds_unit: bool) -> None:
    """Tell the gate what is committed: that a user's ticket holds a unit, or does not any more."""
    _run(scripts.RECORD, sale.sku, sale.pk, user_id, _state(holds_unit), mark, otherwise=0)


def begin(sale: FlashSale) -> int | None:
    """Prepare to load a sale's gate, and return since when: read the tickets afterwards.

    :returns: ``None`` when there is no gate that answers.
    """
    since = _run(scripts.BEGIN, sale.sku, sale.pk, _milliseconds(sale.ends_at), otherwise=None)
    return None if since is None else int(since)


def load(sale: FlashSale, *, since: int, marks: Iterable[tuple[int, bool, str]]) -> int | None:
    """Replace the gate by what the database says, save for what was written ``since``.

    ``marks`` are user, whether the ticket holds a unit, and the key's mark, of each ticket. What requests
    that are at work have set aside stays so for ``FLASH_ADMISSION_PATIENCE``.

    :returns: the units left, or ``None`` when there is no gate that answers.
    """
    entries = {f"u:{user_id}": f"{_state(holds)}:{since}:{mark}:" for user_id, holds, mark in marks}
    return _run(
        scripts.LOAD,
        sale.sku,
        sale.pk,
        since,
        settings.FLASH_ADMISSION_PATIENCE // MICROSECOND,
        sale.units,
        _milliseconds(sale.starts_at) * 1000,
        _milliseconds(sale.ends_at),
        json.dumps(entries),
        otherwise=None,
    )


def may_refresh(sku: str) -> bool:
    """Tell whether this request shall load the gate; within :data:`REFRESH` one of all processes does."""
    name = f"{_name(sku)}:refresh"
    return bool(_guarded(lambda client: client.set(name, 1, px=REFRESH, nx=True), otherwise=False))


def left(sku: str) -> int | None:
    """Return how many units the gate would let in, or ``None`` when it does not know."""
    found = _guarded(lambda client: client.hget(_name(sku), "left"), otherwise=None)
    return None if found is None else int(found)


def _state(holds_unit: bool) -> str:
    return "h" if holds_unit else "x"


def _name(sku: str) -> str:
    return f"shop:flash:{{{sku}}}"


def _milliseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(milliseconds=1)


def _run(script: str, sku: str, *arguments: Any, otherwise: T) -> Any | T:
    name = _name(sku)
    return _guarded(lambda client: _script(client, script)([name], arguments), otherwise=otherwise)


def _guarded(use: Callable[[Redis], Any], *, otherwise: T) -> Any | T:
    if not is_on():
        return otherwise
    client = _client(settings.FLASH_GATE_URL, settings.FLASH_GATE_TIMEOUT)
    return _breaker().call(lambda: use(client), otherwise=otherwise, errors=ERRORS)


def _breaker() -> Breaker:
    return breaker("flash gate")


@cache
def _script(client: Redis, script: str) -> Any:
    return client.register_script(script)


@cache
def _client(url: str, timeout: timedelta) -> Redis:
    """Bounded, and without retries: a request that was let in twice would find itself a repeat."""
    seconds = timeout.total_seconds()
    return Redis.from_url(
        url,
        socket_timeout=seconds,
        socket_connect_timeout=seconds,
        retry=Retry(NoBackoff(), 0),
        decode_responses=True,
    )
