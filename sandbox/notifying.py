"""Telling the shop: at once or late, once or several times, and again until it acknowledges."""

import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from threading import Thread
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

from .notices import KINDS, MAKERS

TRIES: Final = 8
"""How often a notice is sent that nobody acknowledges."""

PAUSE: Final = 0.5
"""Seconds between two tries."""

ATTENTION: Final = 5.0
"""Seconds that the shop has for its acknowledgement."""


@dataclass
class Notifier:
    """Sends notices to ``{url}/{provider}``; without an address it sends none."""

    url: str | None = None
    secrets: dict[str, Any] = field(default_factory=dict)
    copies: list[int] = field(default_factory=lambda: [1])
    """How many copies a charge's notice has: one of these numbers, by chance."""

    seconds: list[float] = field(default_factory=lambda: [0.0])
    """How late a copy is: one of these, by chance."""

    @classmethod
    def read(cls, *, url: str | None, secrets: Path | None) -> "Notifier":
        """Take the keys from a file."""
        return cls(url=url, secrets=json.loads(secrets.read_text()) if secrets else {})

    def tell(self, charge: dict[str, Any], kind: str = "paid") -> None:
        """Send a notice in the background, as the plan says."""
        if self.url and charge["provider"] in self.secrets:
            for _ in range(random.choice(self.copies)):  # noqa: S311
                late = random.choice(self.seconds)  # noqa: S311
                Thread(target=self._insist, args=(kind, charge, late), daemon=True).start()

    def send(self, charge: dict[str, Any], kinds: list[str], *, at_once: bool) -> list[dict[str, Any]]:
        """Send these notices of a charge now, once each; return the answers.

        :raises ValueError: when a kind is none, or tells of a refund that was not made.
        """
        if not set(kinds) <= set(KINDS) or ("refunded" in kinds and not charge["refunds"]):
            raise ValueError(f"kinds are {KINDS}; refunded only after a refund")
        with ThreadPoolExecutor(len(kinds) if at_once else 1) as pool:
            return list(pool.map(lambda kind: self._post(kind, charge), kinds))

    def _insist(self, kind: str, charge: dict[str, Any], late: float) -> None:
        time.sleep(late)
        for _ in range(TRIES):
            if self._post(kind, charge)["acknowledged"]:
                return
            time.sleep(PAUSE)

    def _post(self, kind: str, charge: dict[str, Any]) -> dict[str, Any]:
        provider = charge["provider"]
        body, headers = MAKERS[provider](kind, charge, self.secrets[provider])
        request = Request(f"{self.url}/{provider}", body, headers, method="POST")  # noqa: S310
        try:
            with build_opener(ProxyHandler({})).open(request, timeout=ATTENTION) as answer:
                return _answer(provider, answer.status, answer.read())
        except HTTPError as error:
            return _answer(provider, error.code, error.read())
        except (OSError, HTTPException):
            return _answer(provider, 0, b"")


def _answer(provider: str, status: int, body: bytes) -> dict[str, Any]:
    done = body == b"success" if provider == "alipay" else 200 <= status < 300
    return {"status": status, "body": body.decode(errors="replace"), "acknowledged": done}
