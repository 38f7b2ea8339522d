"""The shop under gunicorn, and the sandbox providers, as children of the demo."""

import contextlib
import socket
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

import httpx

from sandbox import secrets

from .processes import STOP, Process, ProcessFailed

START = timedelta(seconds=30)
"""How long the first answer may take on a slow machine."""

WORKERS = 2
THREADS = 16
"""Of each worker: twenty clients at once, some of them waiting."""


class Server(Process):
    """The shop on one address, as long as the ``with`` block lasts."""

    name = "gunicorn"
    probe = "/livez"

    def __init__(
        self, *, host: str, port: int, env: Mapping[str, str] | None = None, log: IO[str] | None = None
    ) -> None:
        super().__init__(env=env, log=log)
        self.host = host
        self.port = port

    @property
    def url(self) -> str:
        """The address to ask."""
        everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
        return f"http://{_address(everywhere.get(self.host, self.host), self.port)}"

    def command(self) -> list[str]:
        """Serve by gunicorn."""
        options = {
            "bind": _address(self.host, self.port),
            "worker-class": "gthread",
            "workers": WORKERS,
            "threads": THREADS,
            "graceful-timeout": STOP // timedelta(seconds=2),
            "log-level": "warning",
        }
        arguments = [f"--{name}={value}" for name, value in options.items()]
        return ["-m", "gunicorn", "config.wsgi", "--preload", "--no-control-socket", *arguments]

    def wait_until_ready(self) -> None:
        """Wait for the first answer.

        :raises ProcessFailed: when there is none.
        """
        until = time.monotonic() + START.total_seconds()
        while time.monotonic() < until:
            if (code := self.process.poll()) is not None:
                raise ProcessFailed(f"{self.name} ended with code {code}")
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{self.url}{self.probe}", trust_env=False).is_success:
                    return
            time.sleep(0.05)
        raise ProcessFailed(f"no answer within {START.total_seconds():.0f} s")


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

    def texts(self, phone: str) -> list[dict[str, Any]]:
        """Return what was sent to one number."""
        return self.send("GET", "/messages", params={"phone": phone})

    def rule(self, mode: str, **members: Any) -> None:
        """Let the next call that matches go wrong: see ``sandbox/rules.py``."""
        self.send("POST", "/rules", json={"mode": mode, **members})

    def send(self, method: str, path: str, **content: Any) -> Any:
        """Ask, and return the answer's JSON."""
        with httpx.Client(base_url=self.url, trust_env=False, timeout=30) as client:
            return client.request(method, path, **content).raise_for_status().json()

    def command(self) -> list[str]:
        """Serve the sandbox."""
        where = ["--host", self.host, "--port", str(self.port), "--secrets", str(self.secrets_file)]
        return ["-m", "sandbox", *where]


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
