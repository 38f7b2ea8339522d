"""The sandbox provider as a process of its own, and how tests tell it to go wrong."""

import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx

from tests.servers.private import free_port, spawn, wait_until

ROOT = Path(__file__).parents[1]


@dataclass
class SandboxProcess:
    notify: str = ""
    """Where it sends its notices."""

    secrets: Path | None = None
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] = field(init=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "sandbox", "--port", str(self.port)]
        if self.notify:
            command += ["--notify", self.notify, "--secrets", str(self.secrets)]
        self.process = spawn(*command, end=signal.SIGKILL, cwd=ROOT)
        wait_until(self.charges, alive=lambda: self.process.poll() is None)
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()

    def charges(self, order_no: str | None = None) -> list[dict[str, Any]]:
        """What it charged, of one order or of all."""
        return self.send("GET", "/charges", params={"order": order_no} if order_no else {})

    def messages(self, phone: str) -> list[dict[str, Any]]:
        """What it sent to one telephone number."""
        return self.send("GET", "/messages", params={"phone": phone})

    def rule(self, mode: str, **members: Any) -> None:
        """Go wrong: see ``sandbox/rules.py``."""
        self.send("POST", "/rules", json={"mode": mode, **members})

    def clear(self) -> None:
        self.send("DELETE", "/rules")

    def outage(self, seconds: float) -> None:
        """Refuse every connection for so long."""
        self.send("POST", "/outage", json={"seconds": seconds})

    def plan(self, *, copies: list[int], seconds: list[float]) -> None:
        """How often and how late charges are told to the shop."""
        self.send("POST", "/plan", json={"copies": copies, "seconds": seconds})

    def notices(self, order_no: str, *kinds: str, at_once: bool = False) -> list[dict[str, Any]]:
        """Send these notices now."""
        return self.send("POST", "/notices", json={"order": order_no, "kinds": kinds, "at_once": at_once})

    def send(self, method: str, path: str, **content: Any) -> Any:
        with httpx.Client(base_url=self.url, trust_env=False, timeout=20) as client:
            return client.request(method, path, **content).raise_for_status().json()
