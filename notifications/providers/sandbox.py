"""The sandbox, which plays the provider of texts: a process of its own, asked over HTTP."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import httpx
from django.conf import settings

from . import http
from .base import Busy, Misconfigured, NoAnswer, Rejected

REFUSALS: Final = {
    httpx.codes.UNPROCESSABLE_ENTITY: Rejected,
    httpx.codes.TOO_MANY_REQUESTS: Busy,
    httpx.codes.SERVICE_UNAVAILABLE: Busy,
}
"""Definite, with the sandbox's own code: a gateway's 503 may hide a request that it has passed on."""


class Sandbox:
    """It takes each key once, tells what became of it, and can close it."""

    is_once_by_key = True

    def __init__(self) -> None:
        self.http = http.client(f"{settings.SANDBOX_URL}/sms", trust_env=False)

    def send(self, *, key: str, recipient: str, template: str, params: Mapping[str, str]) -> str:
        """Send a text."""
        content = {**params, "key": key, "phone": recipient, "template": template}
        return _number(self._ask("POST", "/messages", json=content))

    def find(self, *, key: str, recipient: str, since: datetime) -> str | None:
        """Return what was sent under ``key``."""
        return _number_if_any(self._ask("GET", f"/messages/{key}"))

    def close(self, *, key: str) -> str | None:
        """See to it that nothing is sent under ``key`` any more."""
        return _number_if_any(self._ask("POST", f"/messages/{key}/close"))

    def _ask(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        response = http.send(self.http, method, path, **content)
        if refusal := REFUSALS.get(response.status_code):
            raise refusal(http.code(http.document(response).get("code")))
        if response.status_code in http.NOTHING_WAS_DONE:
            raise Misconfigured(f"status {response.status_code}")
        if response.status_code != httpx.codes.OK:
            raise NoAnswer(f"status {response.status_code}")
        return http.document(response)


def _number(answer: dict[str, Any]) -> str:
    message = answer.get("message")
    return http.number(message.get("message_no") if isinstance(message, dict) else None)


def _number_if_any(answer: dict[str, Any]) -> str | None:
    return None if answer.get("message", ...) is None else _number(answer)
