"""One guarded API in gunicorn, and a client that sends and keeps every byte."""

import http.client
import json
import os
import signal
import subprocess
import sys
import venv
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil

from tests.databases import PostgreSQLDatabase
from tests.servers.private import free_port, spawn, temporary_directory, wait_until

ROOT = Path(__file__).parents[2]
COMMON = ("djangorestframework>=3.16", "psycopg[binary]", "gunicorn", "redis", "django-environ")
WORKERS, THREADS = 4, 8


@dataclass(frozen=True)
class Answer:
    """What the client saw; ``status`` is 0 where the connection was dropped."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(kw_only=True)
class Server:
    """gunicorn with 4 workers of 8 threads, on a database of its own."""

    peer: str
    atomic_requests: bool
    port: int = field(default_factory=free_port)

    def __post_init__(self) -> None:
        self.adapter = adapter(self.peer)
        self.python = environment_python(self.peer)
        self.database = PostgreSQLDatabase(name=f"peers_{self.peer}_{os.getpid()}")
        self.files = temporary_directory("peers")
        self.users: dict[str, dict[str, str]] = {}

    def __enter__(self) -> "Server":
        self.database.create()
        try:
            self.users = json.loads(self.run("-m", "benchmarks.peers.prepare"))
            self.start()
        except BaseException:
            self.database.drop()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        family = psutil.Process(self.process.pid).children(recursive=True)
        self.process.kill()
        for child in family:
            child.kill()
        self.process.wait()
        self.database.drop()

    def start(self) -> None:
        """Return once it answers."""
        where = ["--bind", f"127.0.0.1:{self.port}", "--no-control-socket"]
        size = ["--workers", str(WORKERS), "--threads", str(THREADS), "--limit-request-field_size", "65000"]
        with self.log.open("ab") as log:
            self.process = spawn(
                *[self.python, "-m", "gunicorn", *where, *size, "benchmarks.peers.wsgi"],
                end=signal.SIGTERM,
                cwd=ROOT,
                stdout=log,
                env=self.environment,
            )
        wait_until(lambda: self.request("/orders"), alive=lambda: self.process.poll() is None)

    def run(self, *arguments: str) -> str:
        command = [self.python, *arguments]
        return subprocess.check_output(command, cwd=ROOT, env=self.environment, text=True)

    @property
    def log(self) -> Path:
        return self.files / "log"

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {
            "ATOMIC_REQUESTS": str(self.atomic_requests).lower(),
            "ATTEMPTS": str(self.files),
            "DATABASE_URL": self.database.url,
            "DJANGO_SETTINGS_MODULE": "benchmarks.peers.settings",
            "PEER": self.peer,
        }

    def post(self, path: str, key: bytes | None, **options: Any) -> Answer:
        """Send a POST; a connection that the server drops is an answer too."""
        try:
            return self.request(path, key, **options)
        except (ConnectionError, http.client.BadStatusLine):
            return Answer(0)

    def request(
        self,
        path: str,
        key: bytes | None = None,
        *,
        probe: str = "-",
        body: bytes = b'{"amount": 5}',
        content_type: str = "application/json",
        user: str = "alice",
        login: str = "token",
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.putrequest("POST", path)
        for name, value in self.credentials(user, login).items():
            connection.putheader(name, value)
        if key is not None:
            connection.putheader("Idempotency-Key", key)
        connection.putheader("Probe", probe)
        connection.putheader("Content-Type", content_type)
        connection.putheader("Content-Length", str(len(body)))
        try:
            return exchange(connection, body)
        finally:
            connection.close()

    def credentials(self, user: str, login: str) -> dict[str, str]:
        return {
            "token": {"Authorization": f"Token {self.users[user]['token']}"},
            "session": {"Cookie": f"sessionid={self.users[user]['session']}"},
            "wrong": {"Authorization": "Token wrong"},
            "none": {},
        }[login]

    def orders(self, probe: str) -> int:
        with self.database.connect() as connection:
            statement = "SELECT count(*) FROM benchmarks_order WHERE sku = %s"
            return connection.execute(statement, [probe]).fetchone()[0]

    def pids(self, probe: str) -> list[int]:
        """The workers that executed the view, once for each execution."""
        path = self.files / probe
        return [int(line) for line in path.read_text().split()] if path.exists() else []


def exchange(connection: http.client.HTTPConnection, body: bytes) -> Answer:
    with suppress(BrokenPipeError, ConnectionResetError):  # it may answer before it has read the whole body
        connection.endheaders(body)
    response = connection.getresponse()
    content = response.read()
    return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, content)


def adapter(peer: str) -> ModuleType:
    return import_module(f"benchmarks.peers.adapters.{peer}")


def environment_python(peer: str) -> str:
    """Return the Python that has the peer installed; its environment is made once, in ``.venvs``."""
    requirements = adapter(peer).REQUIREMENTS
    if not requirements:
        return sys.executable
    directory = ROOT / ".venvs" / f"peer-{peer}"
    python = str(directory / "bin" / "python")
    ready = directory / ".installed"
    if not ready.exists():
        venv.create(directory, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *COMMON, *requirements], check=True)
        ready.touch()
    return python
