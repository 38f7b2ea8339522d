"""How pieces are taken although rivals want the same ones. None of the ways oversells.

conditional   ``UPDATE … WHERE on_hand >= quantity``: one statement decides. The default.
optimistic    read the version, ``UPDATE … WHERE version = …``, and begin again when a rival was quicker: for
              an article that many look at and few buy.
locked        ``SELECT … FOR UPDATE`` first: rivals queue from the look on.

Each is a function of a :class:`Demand`, within an open transaction, and returns what is left afterwards.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from django.conf import settings
from django.db import models
from django.db.models import F

from idempotency import engine

from .exceptions import InsufficientStock, StockBusy, StockChanged

ATTEMPTS: Final = 8
"""How often an optimistic deduction begins before the stock is busy."""

BACKOFF: Final = timedelta(milliseconds=5)
"""The longest pause before the second attempt; it doubles, and chance spreads the rivals."""

Result = TypeVar("Result")


class Level(NamedTuple):
    """How many pieces of an article are on hand, at which version."""

    remaining: int
    version: int

    def without(self, quantity: int) -> "Level":
        """The level after a deduction."""
        return Level(self.remaining - quantity, self.version + 1)


NOTHING: Final = Level(0, 0)
"""What is on hand of an unknown article."""


@dataclass(frozen=True, kw_only=True)
class Demand:
    """So many pieces of one article."""

    items: models.QuerySet
    sku: str
    quantity: int

    is_alone: bool
    """Whether the transaction is this deduction's own, so that it can be begun again."""

    def look(self, *, lock: bool = False) -> Level:
        """Read the level; with ``lock`` as it is behind any snapshot, and so it stays until the commit."""
        rows = self.items.select_for_update() if lock else self.items
        found = rows.filter(sku=self.sku).values_list("on_hand", "version").first()
        return Level(*found) if found else NOTHING

    def reduce(self, **condition: Any) -> bool:
        """Take the pieces if the row meets the condition: the WHERE clause decides."""
        rows = self.items.filter(sku=self.sku, **condition)
        return bool(rows.update(on_hand=F("on_hand") - self.quantity, version=F("version") + 1))

    def is_met_by(self, level: Level) -> bool:
        """Whether so many are there."""
        return level.remaining >= self.quantity


Strategy = Callable[[Demand], Level]


def conditional(demand: Demand) -> Level:
    """Take them if there are enough.

    :raises InsufficientStock: when there are not.
    """
    if not demand.reduce(on_hand__gte=demand.quantity):
        raise InsufficientStock(demand.sku)
    return demand.look()  # the update has locked the row


def optimistic(demand: Demand) -> Level:
    """Take them if nothing has changed since the look.

    Within a caller's transaction a second look could show the same snapshot again, and a pause would keep
    others waiting for the caller's locks: there the second look locks, and its update cannot fail.

    :raises InsufficientStock: when there are not enough.
    :raises StockBusy: when a rival was quicker.
    """
    for lock in [False] if demand.is_alone else [False, True]:
        level = demand.look(lock=lock)
        if demand.is_met_by(level) and _reduce_at(demand, level.version):
            return level.without(demand.quantity)
    raise StockBusy(demand.sku) if demand.is_met_by(level) else InsufficientStock(demand.sku)


def locked(demand: Demand) -> Level:
    """Keep rivals out, then look, then take.

    :raises InsufficientStock: when there are not enough.
    """
    level = demand.look(lock=True)
    if not demand.is_met_by(level):
        raise InsufficientStock(demand.sku)
    demand.reduce()
    return level.without(demand.quantity)


def at_version(demand: Demand, *, version: int) -> Level:
    """Take them if nothing has changed since the caller's own look; there is no second attempt.

    :raises InsufficientStock: when there are not enough.
    :raises StockChanged: when there are, at another version.
    """
    if _reduce_at(demand, version):
        return demand.look()
    present = demand.look(lock=True)
    raise StockChanged(demand.sku) if demand.is_met_by(present) else InsufficientStock(demand.sku)


STRATEGIES: Final[dict[str, Strategy]] = {
    "conditional": conditional,
    "optimistic": optimistic,
    "locked": locked,
}


def choose(*, name: str | None, version: int | None) -> Strategy:
    """Return the strategy of that name, else of ``STOCK_STRATEGY``; a version decides alone.

    :raises ValueError: when there is none of that name.
    """
    name = name or settings.STOCK_STRATEGY
    if name not in STRATEGIES:
        raise ValueError(f"There is no strategy {name!r}: use one of {', '.join(STRATEGIES)}.")
    return STRATEGIES[name] if version is None else partial(at_version, version=version)


def insist(attempt: Callable[[], Result]) -> Result:
    """Call ``attempt``, which owns its transaction, until no rival is in its way; bounded in number and time.

    :raises StockBusy: when rivals were quicker each time.
    :raises OperationInProgress: when the database ended the transaction too often for its rivals' sake.
    """
    for number in range(1, ATTEMPTS):
        try:
            return engine.rerun(attempt)
        except StockBusy:
            time.sleep(random.random() * BACKOFF.total_seconds() * 2**number)  # noqa: S311
    return engine.rerun(attempt)


def _reduce_at(demand: Demand, version: int) -> bool:
    return demand.reduce(version=version, on_hand__gte=demand.quantity)
