"""The shop under gunicorn, and the sandbox providers, as children of the demo."""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import httpx
from django.conf import settings

from sandbox import secrets

START = timedelta(seconds=30)
"""How long the first answer may take on a slow machine."""

STOP = timedelta(seconds=10)
"""How long running requests may take to end."""

PR_SET_PDEATHSIG = 1
"""Linux's prctl(2): the signal to get when the parent is gone."""

WORKERS = 2
THREADS = 16
"""Of each worker: twenty clients at once, some of them waiting."""


class ServerFailed(Exception):
    """The server did not start, or ended by itself."""


class Server:
    """The shop on one address, as long as the ``with`` block lasts."""

    name = "gunicorn"
    probe = "/livez"

    def __init__(
        self, *, host: str, port: int, env: Mapping[str, str] | None = None, log: IO[str] | None = None
    ) -> None:
        self.host = host
        self.port = port
        self.env = dict(env or {})
        self.log = log

    @property
    def url(self) -> str:
        """The address to ask."""
        everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
        return f"http://{_address(everywhere.get(self.host, self.host), self.port)}"

    def __enter__(self) -> Self:
        """Start, and wait for the first answer.

        :raises ServerFailed: when there is none.
        """
        self.process = subprocess.Popen(
            self._command(),
            cwd=settings.BASE_DIR,
            env={**os.environ, **self.env},
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,  # Ctrl-C is ours to hear; we stop the server in order
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
        )
        try:
            self._wait_until_alive()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()

    def wait(self) -> None:
        """Return when the server has ended by itself.

        :raises ServerFailed: always.
        """
        raise ServerFailed(f"{self.name} ended with code {self.process.wait()}")

    def stop(self) -> None:
        """Let running requests end, then stop all processes."""
        self.process.terminate()
        try:
            self.process.wait(STOP.total_seconds())
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _command(self) -> list[str]:
        options = {
            "bind": _address(self.host, self.port),
            "worker-class": "gthread",
            "workers": WORKERS,
            "threads": THREADS,
            "graceful-timeout": STOP // timedelta(seconds=2),
            "log-level": "warning",
        }
        arguments = [f"--{name}={value}" for name, value in options.items()]
        return [
            sys.executable,
            "-m",
            "gunicorn",
            "config.wsgi",
            "--preload",
            "--no-control-socket",
            *arguments,
        ]

    def _wait_until_alive(self) -> None:
        until = time.monotonic() + START.total_seconds()
        while time.monotonic() < until:
            if (code := self.process.poll()) is not None:
                raise ServerFailed(f"{self.name} ended with code {code}")
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{self.url}{self.probe}", trust_env=False).is_success:
                    return
            time.sleep(0.05)
        raise ServerFailed(f"no answer within {START.total_seconds():.0f} s")


class SandboxServer(Server):
    """The sandbox providers on one address, with keys of their own."""

    name = "the sandbox"
    probe = "/charges"

    def __init__(self, *, host: str, port: int, directory: Path) -> None:
        super().__init__(host=host, port=port)
        self.secrets_file = directory / "secrets.json"
        self.secrets = secrets.write(self.secrets_file)

    @property
    def for_shop(self) -> dict[str, str]:
        """The environment of a shop that works with these providers."""
        return {"SANDBOX_URL": self.url, **secrets.environment(self.secrets)}

    def notify(self, shop: Server) -> None:
        """Tell this shop of charges from now on."""
        self.send("POST", "/plan", json={"url": f"{shop.url}/api/payments/callbacks"})

    def charges(self, order_no: str) -> list[dict[str, Any]]:
        """Return what was charged for one order."""
        return self.send("GET", "/charges", params={"order": order_no})

    def rule(self, mode: str, *, order: str, **members: Any) -> None:
        """Let the next call for this order go wrong: see ``sandbox/rules.py``."""
        self.send("POST", "/rules", json={"mode": mode, "order": order, **members})

    def send(self, method: str, path: str, **content: Any) -> Any:
        """Ask, and return the answer's JSON."""
        with httpx.Client(base_url=self.url, trust_env=False, timeout=30) as client:
            return client.request(method, path, **content).raise_for_status().json()

    def _command(self) -> list[str]:
        where = ["--host", self.host, "--port", str(self.port), "--secrets", str(self.secrets_file)]
        return [sys.executable, "-m", "sandbox", *where]


def free_port(host: str) -> int:
    """Return a port that nobody listens on."""
    with socket.create_server((host, 0)) as server:
        return server.getsockname()[1]


def is_free(host: str, port: int) -> bool:
    """Tell whether a server can listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError:
        return False
    return True


def read_tail(path: Path, *, lines: int = 20) -> str:
    """Return the end of a log."""
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _end_with_parent() -> None:
    """Have Linux end the server when the demo is killed and cannot do so."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
