"""A real Celery worker as a process of its own, with a broker and a database of its own."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
from celery import Celery

from idempotency.values import Operation
from tests.databases import Database
from tests.processes import ROOT, environment
from tests.servers.private import spawn, wait_until


@dataclass(kw_only=True)
class Worker:
    """``celery worker`` with a pool of processes, on a queue that only it and the test know."""

    database: Database
    broker: str
    """How the worker reaches the broker; the test may break this way."""

    door: str
    """How the test reaches it."""

    settings: str
    log: Path
    processes: int = 3
    queue: str = field(default_factory=lambda: f"tests-{uuid4()}")
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self) -> None:
        """Return once it takes messages.

        :raises TimeoutError: with what it logged, when it does not.
        """
        ready = self.output().count(" ready.")
        with self.log.open("ab") as log:
            self.process = spawn(
                *self.command(), end=signal.SIGKILL, cwd=ROOT, stdout=log, env=self.environment()
            )
        self.wait_for(lambda: self.output().count(" ready.") > ready)

    def command(self) -> list[str]:
        pool = ["--pool", "prefork", "--concurrency", str(self.processes), "--loglevel", "INFO"]
        alone = ["--without-gossip", "--without-mingle", "--hostname", f"{self.queue}@localhost"]
        return [sys.executable, "-m", "celery", "-A", "config", "worker", *pool, *alone]

    def environment(self) -> dict[str, str]:
        ours = environment(database=self.database, settings=self.settings)
        return {**ours, "BROKER_URL": self.broker, "TEST_QUEUE": self.queue, "CELERY_SKIP_CHECKS": "1"}

    def send(self, name: str, *, task_id: str = "", countdown: float = 0, **kwargs: Any) -> str:
        """Send a task straight to the broker; return its id."""
        app = Celery(broker=self.door, set_as_current=False)
        with app.connection_for_write() as connection:
            sent = app.send_task(
                name,
                kwargs=kwargs,
                queue=self.queue,
                task_id=task_id or None,
                countdown=countdown,
                connection=connection,
            )
        return str(sent.id)

    def output(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def lines(self, *words: str) -> int:
        """Count the lines of the log that hold all these words."""
        return sum(all(word in line for word in words) for line in self.output().splitlines())

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """:raises TimeoutError: with what the worker logged, when it does not come true in time."""

        def probe() -> None:
            if not condition():
                raise AssertionError(self.output()[-5000:])

        wait_until(probe, alive=lambda: self.process.poll() is None)

    def values(self, statement: str) -> list[Any]:
        """The first column of the rows of *statement*."""
        connection = self.database.connect()
        try:
            cursor = connection.cursor()
            cursor.execute(statement)
            return [row[0] for row in cursor.fetchall()]
        finally:
            connection.close()

    def done(self, message_id: str) -> list[str]:
        """What is committed of the work on a message."""
        return self.values(f"SELECT name FROM lab_effect WHERE name LIKE '%{message_id}%' ORDER BY id")

    def outcomes(self, task: str, key: str) -> list[Any]:
        """What is kept as the result of the work: one, or none yet."""
        record = Operation(name=f"tasks.{task}", scope="", key=key).id
        kept = "completed_at IS NOT NULL"
        bodies = self.values(f"SELECT body FROM idempotency_record WHERE id = '{record}' AND {kept}")
        return [json.loads(bytes(body)) for body in bodies]

    def stop(self) -> None:
        """End it in order: what runs is finished."""
        self.process.terminate()
        self.process.wait(30)

    def kill(self) -> None:
        """kill -9 for the worker and its processes, the worker first."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        for process in (self.process, *children):
            process.kill()
        self.process.wait()
        psutil.wait_procs(children, timeout=10)

    def restart(self) -> None:
        """Stop it and start it again on the same queue and database."""
        self.stop()
        self.start()
