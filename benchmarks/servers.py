"""The servers that are measured: those that the environment names, else private ones as in the tests."""

import os
from pathlib import Path

from tests.servers import postgresql
from tests.servers.private import PrivateServer, ServerFailed


class PostgreSQL(postgresql.PostgreSQL):
    """Flushes each commit as a shop's database does; that of the tests does not."""

    def command(self) -> list[str | Path]:
        return [*super().command(), "--fsync=on", "--full_page_writes=on", "--synchronous_commit=on"]


def provide(kind: type[PrivateServer]) -> str:
    """Have a server at the variable of its kind, such as ``DATABASE_URL``; return what it is.

    :raises ServerFailed: when there is none, or it does not answer.
    """
    if url := os.environ.get(kind.variable):
        return f"{kind.name} {_version(kind, url)}, given by {kind.variable}"
    server = kind()
    server.prepare()
    server.start()
    version = server.wait()
    os.environ[kind.variable] = server.url
    return f"{kind.name} {version}, private"


def _version(kind: type[PrivateServer], url: str) -> str:
    try:
        return kind.probe(url)
    except Exception as error:
        raise ServerFailed(f"No {kind.name} answers at {kind.variable}: {error}") from error
