"""``manage.py demo``"""

import fcntl
import os
import signal
import sys
import tempfile
from argparse import BooleanOptionalAction
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections
from django.utils import translation
from django.utils.translation import gettext as _
from rich.console import Console

from demo.client import Client
from demo.data import USERS, offer, token_of
from demo.processes import ProcessFailed, WorkerProcess
from demo.report import report
from demo.server import SandboxServer, Server, free_port, is_free, read_tail
from demo.walk import SKU, Walk

WALK_STOCK = 1000

IMPATIENT = {
    "NOTIFICATIONS_LEASE": "4",
    "NOTIFICATIONS_READ_TIMEOUT": "1",
    "OUTBOX_LEASE": "4",
    "PAYMENTS_LEASE": "5",
    "PAYMENTS_READ_TIMEOUT": "2",
}
"""So that nobody who watches waits half a minute for what a killed process has left."""


class Command(BaseCommand):
    """The shop on one's own machine, from nothing."""

    help = "Walks through the scenarios over real HTTP, then serves the shop until it is stopped."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take where to serve, and whether."""
        parser.add_argument("--host", default="127.0.0.1", help="the address to serve on")
        parser.add_argument("--port", type=int, default=8000, help="the port to serve on")
        parser.add_argument(
            "--serve", action=BooleanOptionalAction, default=True, help="serve after the walk"
        )

    def handle(self, *, host: str, port: int, serve: bool, **options: Any) -> None:
        """Walk and serve.

        Exits with 1 when a figure of the walk is wrong.

        :raises CommandError: when the server fails.
        """
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # stops like Ctrl-C, children first
        self.console = Console(file=sys.stdout, highlight=False)
        with translation.override(_language()), _only_demo_here():
            for wanted in (port, port + 1) if serve else ():
                _check_is_free(host, wanted)
            try:
                self._run(host, port if serve else None)
            except KeyboardInterrupt:
                self.console.print(_("Stopped."))
            except ProcessFailed as error:
                raise CommandError(str(error)) from error

    def _run(self, host: str, port: int | None) -> None:
        self._prepare()
        with (
            tempfile.TemporaryDirectory() as directory,
            _sandbox(host, port, Path(directory)) as sandbox,
            nullcontext() if port is None else Server(host=host, port=port, env=sandbox.for_shop) as server,
        ):
            right = os.environ.get("WALK") == "0" or self._walk(sandbox)
            if not right:
                self.console.print(_("The walk counted something wrong: see ✘ above."), style="bold red")
            if server is not None:
                self._serve(server, sandbox)
        if not right:
            sys.exit(1)

    def _prepare(self) -> None:
        if not _is_given():
            _remove_embedded()
        call_command("migrate", verbosity=0)
        call_command("demo_data", verbosity=0)

    def _walk(self, sandbox: SandboxServer) -> bool:
        offer(SKU, stock=WALK_STOCK)
        connections.close_all()
        with tempfile.TemporaryDirectory() as directory:
            log = Path(directory) / "server.log"
            try:
                with (
                    log.open("w") as file,
                    _walk_server(directory, sandbox, file) as server,
                    WorkerProcess(env={**IMPATIENT, **sandbox.for_shop}, log=file) as worker,
                    Client(server.url, token_of(USERS[0])) as client,
                ):
                    sandbox.notify(server)
                    walk = Walk(client=client, pauses=Path(directory), sandbox=sandbox, worker=worker)
                    return report(walk, self.console)
            except ProcessFailed as error:
                raise ProcessFailed(f"{error}\n{read_tail(log)}") from error
            finally:
                connections.close_all()

    def _serve(self, server: Server, sandbox: SandboxServer) -> None:
        with WorkerProcess(env=sandbox.for_shop):
            sandbox.notify(server)
            listed = _("The sandbox lists what it charged on {charges} and what it sent on {texts}.")
            urls = {"charges": f"{sandbox.url}/charges", "texts": f"{sandbox.url}/messages"}
            self.console.print(listed.format(**urls))
            self.console.print(_("The shop serves on {url}/ (stop it with Ctrl-C).").format(url=server.url))
            server.wait()


def _walk_server(pauses: str, sandbox: SandboxServer, log: Any) -> Server:
    """A server of the walk's own, whose workers are killed; visitors have another one."""
    host = "127.0.0.1"
    env = {"DEMO_PAUSES": pauses, **IMPATIENT, **sandbox.for_shop}
    return Server(host=host, port=free_port(host), env=env, log=log)


def _sandbox(host: str, port: int | None, directory: Path) -> SandboxServer:
    """The providers on the next port, beside the shop."""
    where = free_port(host) if port is None else port + 1
    return SandboxServer(host=host, port=where, directory=directory)


def _check_is_free(host: str, port: int) -> None:
    """:raises CommandError: when somebody serves there."""
    if not is_free(host, port):
        raise CommandError(
            _("Port {port} is taken, and the demo needs two in a row: name another one, PORT=9000.").format(
                port=port
            )
        )


def _is_given() -> bool:
    return bool(os.environ.get("DATABASE_URL"))


def _remove_embedded() -> None:
    """Begin with a fresh file. A given database is never emptied."""
    connections.close_all()
    name = settings.DATABASES["default"]["NAME"]
    for suffix in ("", "-wal", "-shm"):
        Path(f"{name}{suffix}").unlink(missing_ok=True)


@contextmanager
def _only_demo_here() -> Iterator[None]:
    """Refuse to pull the embedded database from under another demo.

    :raises CommandError: while one is running.
    """
    if _is_given():
        yield
        return
    with (settings.BASE_DIR / "var" / "demo.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandError(
                _("A demo is running here already: stop it first, or set DATABASE_URL.")
            ) from None
        yield


def _language() -> str:
    """The language of the terminal, by the variables that gettext reads."""
    for name in ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(name):
            return "zh-hans" if value.lower().startswith("zh") else "en"
    return "en"
