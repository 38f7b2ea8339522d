"""Children of the demo: processes that end with it."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from datetime import timedelta
from types import TracebackType
from typing import IO, Self

from django.conf import settings

STOP = timedelta(seconds=10)
"""How long running requests and tasks may take to end."""

PR_SET_PDEATHSIG = 1
"""Linux's prctl(2): the signal to get when the parent is gone."""


class ProcessFailed(Exception):
    """A child did not start, or ended by itself."""


class Process:
    """A child that runs as long as the ``with`` block lasts."""

    name: str

    def __init__(self, *, env: Mapping[str, str] | None = None, log: IO[str] | None = None) -> None:
        self.env = dict(env or {})
        self.log = log

    def __enter__(self) -> Self:
        """Start, and wait until it is ready.

        :raises ProcessFailed: when it ends instead.
        """
        self.start()
        try:
            self.wait_until_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()

    def start(self) -> None:
        """Start it, for the first time or again."""
        self.process = subprocess.Popen(
            [sys.executable, *self.command()],
            cwd=settings.BASE_DIR,
            env={**os.environ, **self.env},
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,  # Ctrl-C is ours to hear; we stop the children in order
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
        )

    def wait_until_ready(self) -> None:
        """Return when it can be used; here at once."""

    def wait(self) -> None:
        """Return when it has ended by itself.

        :raises ProcessFailed: always.
        """
        raise ProcessFailed(f"{self.name} ended with code {self.process.wait()}")

    def stop(self) -> None:
        """Let what is running end, then stop all of it."""
        self.process.terminate()
        try:
            self.process.wait(STOP.total_seconds())
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()

    def command(self) -> list[str]:
        """What Python is to run."""
        raise NotImplementedError


class WorkerProcess(Process):
    """Who relays the outbox and works on its messages."""

    name = "the worker"

    def command(self) -> list[str]:
        """By Celery where there is a broker, else by the demo's own worker."""
        if settings.HAS_BROKER:
            return [
                "-m",
                "celery",
                "-A",
                "config",
                "worker",
                "--beat",
                "--concurrency=2",
                "--loglevel=WARNING",
            ]
        return ["manage.py", "demo_worker"]


def _end_with_parent() -> None:
    """Have Linux end the child when the demo is killed and cannot do so."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
