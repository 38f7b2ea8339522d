"""Counting what a piece of code sends to its database."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import Any


@dataclass
class Traffic:
    statements: list[str] = field(default_factory=list)
    """As Django executes them; BEGIN and COMMIT are not among them."""

    messages: list[str] = field(default_factory=list)
    """What PostgreSQL's frontend sent; each is a round trip, since simple queries are answered one by one."""


@contextmanager
def traffic(connection: Any) -> Iterator[Traffic]:
    """Record what is sent on this connection."""
    counted = Traffic()

    def count(execute: Any, sql: str, *args: Any) -> Any:
        counted.statements.append(sql)
        return execute(sql, *args)

    connection.ensure_connection()
    with connection.execute_wrapper(count), messages(connection, counted.messages):
        yield counted


@contextmanager
def messages(connection: Any, sent: list[str]) -> Iterator[None]:
    """libpq itself tells: its trace has one line for each message."""
    if connection.vendor != "postgresql":
        yield
        return
    with TemporaryFile("r+") as file:
        protocol = connection.connection.pgconn
        protocol.trace(file.fileno())
        try:
            yield
        finally:
            protocol.untrace()
        file.seek(0)
        sent += [line.split("\t", 3)[-1].strip() for line in file if "\tF\t" in line]
