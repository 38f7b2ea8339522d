from collections.abc import Iterator
from typing import Any

import pytest

from idempotency import breakers
from tests.lab.caches import Server


@pytest.fixture(scope="session")
def redis() -> Iterator[Server]:
    redis = Server().begin()
    yield redis
    redis.stop()


@pytest.fixture
def gated(redis: Server, settings: Any) -> Iterator[Server]:
    """The shop with a gate, which is empty."""
    settings.FLASH_GATE_URL = redis.url
    redis.empty()
    breakers.reset()
    yield redis
    breakers.reset()


@pytest.fixture(params=["gate", "no gate"])
def either(request: pytest.FixtureRequest, settings: Any) -> None:
    """The shop with a gate, and the shop with the database alone."""
    if request.param == "gate":
        request.getfixturevalue("gated")
    else:
        settings.FLASH_GATE_URL = ""
