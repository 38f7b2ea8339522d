"""A private RabbitMQ from this machine's binaries; no wheel brings one."""

import fcntl
import os
import random
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.servers.private import PrivateServer, Program, ServerFailed, free_port, installed

# Debian's rabbitmq-server on PATH changes the user and the directory; the program itself lies here.
PROGRAMS = ("/usr/lib/rabbitmq/bin/rabbitmq-server", "/opt/homebrew/opt/rabbitmq/sbin/rabbitmq-server")


class RabbitMQ(PrivateServer):
    """A node of its own, beside whatever runs on the machine: its name, ports, files and epmd are its own.

    It takes some seconds to start, so that it is started only when a test asks for it: :func:`on_demand`.
    """

    name = "RabbitMQ"
    variable = "RABBITMQ_URL"
    users = ("rabbitmq",)
    hint = "set RABBITMQ_URL or install rabbitmq-server"

    def __init__(self) -> None:
        super().__init__()
        self.epmd_port = free_port()
        self.home.settings = {
            "RUNNING_UNDER_SYSTEMD": "true",  # no shell remains between this process and the node
            "RABBITMQ_CONF_ENV_FILE": str(self.home.path / "none"),
            "RABBITMQ_CONFIG_FILE": str(self.home.path / "rabbitmq"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.home.path / "plugins"),
            "RABBITMQ_NODENAME": f"tests-{self.port}@localhost",
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(self.home.path / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.home.path),
            "RABBITMQ_LOGS": "-",
            "ERL_EPMD_PORT": str(self.epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }

    @classmethod
    def find(cls) -> Program:
        """:raises ServerFailed: when there is none."""
        for program in cls.programs():
            return program
        raise ServerFailed(f"No {cls.name} for the tests: {cls.hint}")

    @classmethod
    def programs(cls) -> Iterator[Program]:
        if next(installed("epmd"), None):
            yield from (Program(path=path) for path in map(Path, PROGRAMS) if path.exists())
            if not Path("/etc/debian_version").exists():
                yield from installed("rabbitmq-server")

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}//"

    @classmethod
    def probe(cls, url: str) -> str:
        from kombu import Connection

        with Connection(url, connect_timeout=5) as connection:
            return str(connection.connect().server_properties["version"])

    def start(self) -> None:
        """Start epmd first, in the foreground: the one that a node starts by itself would outlive it."""
        epmd = next(installed("epmd")).path
        (self.home.path / "plugins").write_text("[].\n")
        (self.home.path / "rabbitmq.conf").write_text(f"listeners.tcp.1 = 127.0.0.1:{self.port}\n")
        self.names = self.home.spawn(
            epmd, "-address", "127.0.0.1", "-port", str(self.epmd_port), end=signal.SIGKILL
        )
        super().start()

    def command(self) -> list[str | Path]:
        return [self.program.path]

    def stop(self) -> None:
        super().stop()
        self.names.kill()
        self.names.wait()


@contextmanager
def on_demand() -> Iterator[str]:
    """Give the URL of one RabbitMQ that all processes of the run share while any of them needs it.

    Who needs it first starts it; who started it stops it when nobody else needs it any more.

    :raises ServerFailed: when it does not start.
    """
    if given := os.environ.get(RabbitMQ.variable):
        yield given
        return
    files = Path(os.environ["TEST_FILES"])
    with (files / "rabbitmq.lock").open("a") as lock:
        server = _start_or_share(files / "rabbitmq.url", lock)
        try:
            yield (files / "rabbitmq.url").read_text()
        finally:
            if server:
                fcntl.flock(lock, fcntl.LOCK_EX)
                (files / "rabbitmq.url").unlink()
                server.stop()


def _start_or_share(address: Path, lock: IO[str]) -> RabbitMQ | None:
    """Hold the shared lock while it is used, and the exclusive one while it is started."""
    while True:
        fcntl.flock(lock, fcntl.LOCK_SH)  # waits while somebody starts it
        if address.exists():
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(random.random() / 10)
            continue
        if not address.exists():
            break
    server = RabbitMQ()
    server.start()
    server.wait()
    address.write_text(server.url)
    fcntl.flock(lock, fcntl.LOCK_SH)
    return server


def is_there() -> bool:
    """Tell whether tests that need a RabbitMQ can run."""
    return bool(os.environ.get(RabbitMQ.variable)) or any(RabbitMQ.programs())


def version(program: Program) -> str:
    """Read the version off the program's own directory: to ask it takes seconds."""
    found = re.search(r"rabbitmq_server-([\d.]+)", str(program.path.resolve()))
    return found[1] if found else "of some version"
