"""Real servers as processes of their own, each on a fresh migrated database."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.databases import VENDORS, Database
from tests.servers.private import free_port, spawn, wait_until

ROOT = Path(__file__).parents[1]
numbers = count(1)


@dataclass(kw_only=True)
class Templates:
    """Migrated databases with the demo's data, made once and copied for every server."""

    made: dict[tuple[str, str], Database] = field(default_factory=dict)

    def fresh(self, *, vendor: str, settings: str) -> Database:
        """A new database of *vendor* (postgresql, mariadb, sqlite); the caller drops it."""
        database = new_database(vendor)
        self.template(vendor=vendor, settings=settings).copy_to(database)
        return database

    def template(self, *, vendor: str, settings: str) -> Database:
        if (vendor, settings) not in self.made:
            database = self.made[vendor, settings] = new_database(vendor)
            database.create()
            manage("migrate", "--no-input", database=database, settings=settings)
            manage("demo_data", database=database, settings=settings)
        return self.made[vendor, settings]

    def drop(self) -> None:
        for database in self.made.values():
            database.drop()


@dataclass(kw_only=True)
class WebServer:
    """gunicorn on a free port of 127.0.0.1 (uvicorn for an ``asgi`` app)."""

    database: Database
    app: str
    settings: str
    workers: int
    threads: int
    env: Mapping[str, str]
    log: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] = field(init=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def database_url(self) -> str:
        return self.database.url

    def start(self) -> None:
        """Return once it answers.

        :raises RuntimeError: with what it logged, when it does not.
        """
        with self.log.open("ab") as log:
            self.process = spawn(
                *self.command(),
                end=signal.SIGTERM,
                cwd=ROOT,
                stdout=log,
                env=environment(database=self.database, settings=self.settings) | dict(self.env),
            )
        try:
            wait_until(self.probe, alive=lambda: self.process.poll() is None)
        except TimeoutError as error:
            raise RuntimeError(f"{self.app} does not serve:\n{self.output()}") from error

    def command(self) -> list[str]:
        if self.app.endswith("asgi"):
            size = ["--workers", str(self.workers)]
            where = ["--host", "127.0.0.1", "--port", str(self.port)]
            return [sys.executable, "-m", "uvicorn", f"{self.app}:application", *size, *where]
        size = ["--workers", str(self.workers), "--threads", str(self.threads)]
        where = ["--bind", f"127.0.0.1:{self.port}", "--no-control-socket"]
        end = ["--graceful-timeout", "5"]
        return [sys.executable, "-m", "gunicorn", self.app, *size, *where, *end]

    def probe(self) -> None:
        answer = httpx.get(f"{self.url}/livez", timeout=10)
        if answer.is_server_error:
            answer.raise_for_status()

    def output(self) -> str:
        return self.log.read_text(errors="replace")[-5000:]

    def pids(self) -> list[int]:
        """The workers' process ids, at this moment."""
        children = psutil.Process(self.process.pid).children()
        # Python's own helper of processes, beside uvicorn's workers.
        return [child.pid for child in children if "resource_tracker" not in " ".join(child.cmdline())]

    def connect(self) -> Any:
        """A DB-API connection of its own, in autocommit, to count what the server did."""
        return self.database.connect()

    def scalar(self, statement: str) -> Any:
        """The first column of the first row of *statement*."""
        connection = self.connect()
        try:
            cursor = connection.cursor()
            cursor.execute(statement)
            return cursor.fetchone()[0]
        finally:
            connection.close()

    def stop(self) -> None:
        """End it in order: requests that are running have five seconds."""
        self.process.terminate()
        self.process.wait(30)

    def kill(self) -> None:
        """kill -9 for the master and its workers."""
        family = [*psutil.Process(self.process.pid).children(recursive=True)]
        self.process.kill()
        for child in family:
            child.kill()
        self.process.wait()

    def restart(self) -> None:
        """Stop it, where it still runs, and start it again on the same port and database."""
        self.stop()
        self.start()


def manage(*arguments: str, database: Database, settings: str) -> None:
    """Run manage.py on *database*; its output is the error's text when it fails."""
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment(database=database, settings=settings),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"manage.py {' '.join(arguments)}:\n{done.stdout}{done.stderr}")


def environment(*, database: Database, settings: str) -> dict[str, str]:
    return {
        **os.environ,
        "DATABASE_URL": database.url,
        "DJANGO_SETTINGS_MODULE": settings,
        "DEBUG": "true",
    }


def new_database(vendor: str) -> Database:
    return VENDORS[vendor](name=f"served_{os.getpid()}_{next(numbers)}")
