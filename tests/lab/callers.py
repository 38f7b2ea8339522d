"""Somebody who sends requests to the lab, and what comes back, to the byte."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from idempotency.answers import KEPT_HEADERS


@dataclass(frozen=True, kw_only=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes
    cookies: tuple[str, ...] = ()

    @property
    def document(self) -> Any:
        return json.loads(self.body)

    @property
    def kept(self) -> dict[str, str]:
        """The headers that a repeat has too."""
        return {name: value for name, value in self.headers.items() if name.lower() in KEPT_HEADERS}

    @property
    def is_replay(self) -> bool:
        return self.headers.get("Idempotent-Replayed") == "true"

    @property
    def summary(self) -> tuple[int, bool]:
        """Status, and whether it is a replay."""
        return self.status, self.is_replay


@dataclass(kw_only=True)
class Caller:
    """Sends with the same key each time, unless told otherwise; ``key=None`` sends none."""

    client: Client = field(default_factory=lambda: Client(raise_request_exception=False))

    @classmethod
    def named(cls, name: str) -> "Caller":
        caller = cls()
        caller.client.force_login(User.objects.get_or_create(username=name)[0])
        return caller

    def post(self, path: str, data: Any = b"{}", *, key: str | None = "key-1", **options: Any) -> Answer:
        return self.send("POST", path, data, key=key, **options)

    def send(
        self,
        method: str,
        path: str,
        data: Any = b"{}",
        *,
        key: str | None = "key-1",
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        content = data if isinstance(data, bytes) else json.dumps(data).encode()
        sent = {"Idempotency-Key": key} if key is not None else {}
        response = self.client.generic(
            method, f"/lab/{path}", content, content_type, headers={**sent, **(headers or {})}
        )
        return read(response)


def read(response: Any) -> Answer:
    """Read an answer as a server would; the client closes it."""
    body = b"".join(response)
    cookies = tuple(sorted(response.cookies))
    return Answer(status=response.status_code, headers=dict(response.items()), body=body, cookies=cookies)
