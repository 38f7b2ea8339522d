"""Do something that can be counted, on the database that holds the records."""

from idempotency import engine
from idempotency.models import IdempotencyRecord
from idempotency.policies import Policy

from .models import Effect


def do(name: str) -> None:
    Effect.objects.using(database()).create(name=name)


def done() -> list[str]:
    """The names of what was done, in order."""
    return list(Effect.objects.using(database()).order_by("pk").values_list("name", flat=True))


def records() -> int:
    return IdempotencyRecord.objects.using(database()).count()


def database() -> str:
    return engine.database(Policy())
