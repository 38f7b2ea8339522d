from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

import pytest

from tests.conftest import VENDORS
from tests.databases import VENDORS as DATABASE_KINDS
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
    served = (vendor, app, atomic)
    return pytest.param(served, id=name_of(served), marks=getattr(pytest.mark, vendor))


def name_of(served: tuple[str, str, bool]) -> str:
    vendor, app, atomic = served
    return f"{vendor}-{app}{'-atomic' if atomic else ''}"


DATABASES = [served(vendor) for vendor in VENDORS]
SERVED_DATABASES = [served(vendor) for vendor in VENDORS if vendor != "sqlite"]


def vendor_of(shop: WebServer) -> str:
    return next(vendor for vendor, kind in DATABASE_KINDS.items() if isinstance(shop.database, kind))


def is_sqlite(shop: WebServer) -> bool:
    return vendor_of(shop) == "sqlite"


ALL_WSGI = [served(vendor, atomic=atomic) for vendor, atomic in product(VENDORS, (False, True))]
ALL = [*ALL_WSGI, *[served(vendor, "asgi") for vendor in VENDORS]]


@pytest.fixture(scope="session")
def shop(
    request: pytest.FixtureRequest, templates: Templates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebServer]:
    """A real server of four processes with plenty of stock, shared by all tests that ask for the like."""
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


@pytest.fixture
def figures(request: pytest.FixtureRequest, record_property: Callable[..., None]) -> Callable[..., None]:
    """Report counts: the last lines of the run add them up over all rounds of a test."""

    def figures(counts: Mapping[str, int], **more: int) -> None:
        name = f"{request.node.originalname}, {name_of(request.node.callspec.params['shop'])}"
        record_property("figures", (name, {**counts, **more}))

    return figures


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for report in terminalreporter.getreports("passed"):
        for name, counts in (value for key, value in report.user_properties if key == "figures"):
            sums[name].update(counts)
    for name, counts in sorted(sums.items()):
        terminalreporter.write_line(f"{name}: " + ", ".join(f"{counts[key]} {key}" for key in sorted(counts)))
