from collections.abc import Iterator
from typing import Any

import pytest

from idempotency.signals import executed, refused, replayed
from tests.lab.callers import Caller
from tests.lab.operations import Lab


@pytest.fixture
def caller() -> Caller:
    """A user of the lab."""
    return Caller.named("alice")


@pytest.fixture
def stranger() -> Caller:
    """Another user."""
    return Caller.named("bob")


@pytest.fixture
def heard() -> Iterator[list[tuple[Any, ...]]]:
    """What the signals told: name and operation, and the reason of a refusal."""
    events: list[tuple[Any, ...]] = []

    def hear_executed(*, operation: Any, outcome: Any, expired: bool, **kwargs: Any) -> None:
        events.append(("executed", operation))

    def hear_replayed(*, operation: Any, outcome: Any, **kwargs: Any) -> None:
        events.append(("replayed", operation))

    def hear_refused(*, operation: Any, reason: str, **kwargs: Any) -> None:
        events.append(("refused", operation, reason))

    receivers = {executed: hear_executed, replayed: hear_replayed, refused: hear_refused}
    for signal, receiver in receivers.items():
        signal.connect(receiver)
    yield events
    for signal, receiver in receivers.items():
        signal.disconnect(receiver)


@pytest.fixture
def lab(database: str) -> Lab:
    """The engine on each database in turn; mark its tests ``lab_db``."""
    return Lab(database)
