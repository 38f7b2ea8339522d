"""Do something that can be counted, on the database that holds the records."""

import psycopg
from django.db import OperationalError

from idempotency import engine
from idempotency.models import IdempotencyRecord
from idempotency.policies import Policy

from .models import Effect

troubles: list[Exception] = []
"""What the next calls of :func:`stumble` raise."""


def do(name: str) -> None:
    Effect.objects.using(database()).create(name=name)


def done() -> list[str]:
    """The names of what was done, in order."""
    return list(Effect.objects.using(database()).order_by("pk").values_list("name", flat=True))


def records() -> int:
    return IdempotencyRecord.objects.using(database()).count()


def database() -> str:
    return engine.database(Policy())


def stumble() -> None:
    """Raise what a test has prepared, if anything."""
    if troubles:
        raise troubles.pop()


def conflict() -> OperationalError:
    """A serialization failure as Django gives it."""
    error = OperationalError("could not serialize access")
    error.__cause__ = psycopg.errors.SerializationFailure()
    return error
