from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest

from tests.conftest import VENDORS
from tests.processes import Templates, WebServer
from tests.scenarios.clients import Client
from tests.scenarios.effects import stock_up
from tests.scenarios.gates import Gate

SETTINGS = "tests.scenarios.settings"
ENVIRONMENT = {"THROTTLE_RATE": ""}


class ShopServer(WebServer):
    """Imports the shop once and forks its workers, which is quick, also after a kill."""

    def command(self) -> list[str]:
        return [*super().command(), *([] if self.app.endswith("asgi") else ["--preload"])]


def served(vendor: str, app: str = "wsgi", *, atomic: bool = False) -> Any:
    """The parameter of ``shop``: a database, a kind of server, and ATOMIC_REQUESTS on or off."""
    name = f"{vendor}-{app}{'-atomic' if atomic else ''}"
    return pytest.param((vendor, app, atomic), id=name, marks=getattr(pytest.mark, vendor))


DATABASES = [served(vendor) for vendor in VENDORS]
SERVER_DATABASES = [served(vendor) for vendor in VENDORS if vendor != "sqlite"]
ALL = [
    *[served(vendor, atomic=atomic) for vendor, atomic in product(VENDORS, (False, True))],
    *[served(vendor, "asgi") for vendor in VENDORS],
]


@pytest.fixture(scope="module")
def shop(
    request: pytest.FixtureRequest, templates: Templates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebServer]:
    """A real server of four processes with plenty of stock, shared by the tests of a module."""
    vendor, app, atomic = request.param
    fresh = templates.fresh(vendor=vendor, settings="config.settings")
    server = ShopServer(
        database=fresh,
        app=f"config.{app}",
        settings=SETTINGS,
        workers=4 if app == "wsgi" else 2,
        threads=32,
        env={**ENVIRONMENT, "ATOMIC_REQUESTS": str(atomic)},
        log=tmp_path_factory.mktemp("logs") / f"{fresh.name}.log",
    )
    try:
        server.start()
        stock_up(server)
        yield server
        server.stop()
    finally:
        fresh.drop()


@pytest.fixture
def alice(shop: WebServer) -> Client:
    return Client(url=shop.url)


@pytest.fixture
def gate() -> Iterator[Gate]:
    with Gate() as gate:
        yield gate
