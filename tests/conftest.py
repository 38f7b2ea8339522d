from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.conf import settings

from tests.processes import Templates, WebServer
from tests.sandboxes import SandboxProcess

VENDORS = ("postgresql", "mariadb", "sqlite")


@pytest.fixture(params=[pytest.param(name, marks=getattr(pytest.mark, name)) for name in VENDORS])
def vendor(request: pytest.FixtureRequest) -> str:
    """Each database that the library supports, in turn: postgresql, mariadb, sqlite."""
    return request.param


@pytest.fixture
def database(vendor: str) -> str:
    """The alias of each database in turn.

    Use it with ``@pytest.mark.django_db(transaction=True, databases="__all__")``.
    """
    return vendor if vendor in settings.DATABASES else "default"


@pytest.fixture(scope="session")
def templates() -> Iterator[Templates]:
    templates = Templates()
    yield templates
    templates.drop()


@pytest.fixture
def serve(templates: Templates, tmp_path: Path) -> Iterator[Callable[..., WebServer]]:
    """A factory of real servers; each gets a database of its own and ends with the test."""
    with ExitStack() as at_end:

        def serve(
            *,
            database: str = "postgresql",
            workers: int = 2,
            threads: int = 8,
            env: Mapping[str, str] | None = None,
            app: str = "config.wsgi",
            settings: str = "config.settings",
        ) -> WebServer:
            fresh = templates.fresh(vendor=database, settings=settings)
            at_end.callback(fresh.drop)
            server = WebServer(
                database=fresh,
                app=app,
                settings=settings,
                workers=workers,
                threads=threads,
                env=env or {},
                log=tmp_path / f"{fresh.name}.log",
            )
            server.start()
            at_end.callback(server.stop)
            return server

        yield serve


@pytest.fixture(scope="session")
def sandbox_process() -> Iterator[SandboxProcess]:
    with SandboxProcess() as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(sandbox_process: SandboxProcess) -> Iterator[SandboxProcess]:
    """The sandbox provider, on its best behaviour; what it charged before stays."""
    sandbox_process.clear()
    yield sandbox_process
    sandbox_process.clear()
