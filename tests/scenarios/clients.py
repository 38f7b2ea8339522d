"""Clients of a real server: a new connection for each request, as after a failure."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from time import monotonic
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

LOST = (OSError, HTTPException)
"""What a client sees whose server is gone."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, Any]:
        return json.loads(self.body)

    @property
    def data(self) -> dict[str, Any]:
        """What the shop's envelope holds."""
        return self.document["data"]

    @property
    def order(self) -> tuple[str, str]:
        """What every answer to one order has in common."""
        return self.data["orderId"], self.data["createdAt"]

    @property
    def retry_after(self) -> int:
        return int(self.headers["retry-after"])


@dataclass(frozen=True, kw_only=True)
class Order:
    """One order that a client wants; equal ones are one."""

    key: str = field(default_factory=lambda: str(uuid4()))
    sku: str = "TEA-100"
    quantity: int = 1

    @property
    def body(self) -> bytes:
        lines = [{"sku": self.sku, "quantity": self.quantity}]
        return json.dumps({"cart_id": self.key, "currency": "CNY", "lines": lines}).encode()


@dataclass(frozen=True, kw_only=True)
class Client:
    url: str
    token: str = "demo-alice"
    patience: float = 60.0

    def order(self, order: Order, headers: Mapping[str, str] | None = None) -> Answer:
        return self.post("/api/orders", key=order.key, body=order.body, headers=headers)

    def effect(self, key: str, headers: Mapping[str, str] | None = None) -> Answer:
        return self.post("/effects", key=key, body=b"{}", headers=headers)

    def post(self, path: str, *, key: str, body: bytes, headers: Mapping[str, str] | None = None) -> Answer:
        """:raises OSError, HTTPException: ``LOST``, when there is no answer."""
        return self.send("POST", path, body=body, headers=self._headers(key, headers))

    def get(self, path: str) -> Answer:
        return self.send("GET", path)

    def send(
        self, method: str, path: str, *, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        connection = self._connection()
        try:
            connection.request(method, path, body, {**self._authorization, **(headers or {})})
            response = connection.getresponse()
            lowered = {name.lower(): value for name, value in response.getheaders()}
            return Answer(status=response.status, headers=lowered, body=response.read())
        finally:
            connection.close()

    @contextmanager
    def hanging(self, order: Order, headers: Mapping[str, str]) -> Iterator[None]:
        """Send an order, and hang up at the end without having read the answer."""
        connection = self._connection()
        connection.request("POST", "/api/orders", order.body, self._headers(order.key, headers))
        yield
        connection.close()

    def insist(self, order: Order, *, within: float) -> Answer:
        """Repeat at once, whatever happens, until there is a success.

        :raises AssertionError: with the last answer, when there is none ``within`` so many seconds.
        """
        end = monotonic() + within
        last: object = None
        while monotonic() < end:
            try:
                last = answer = self.order(order)
            except LOST as error:
                last = error
            else:
                if answer.status < 300:
                    return answer
        raise AssertionError(f"no success within {within} s: {last}")

    def _connection(self) -> HTTPConnection:
        parts = urlsplit(self.url)
        return HTTPConnection(parts.hostname or "", parts.port, timeout=self.patience)

    def _headers(self, key: str, more: Mapping[str, str] | None) -> dict[str, str]:
        return {
            **self._authorization,
            "Idempotency-Key": key,
            "Content-Type": "application/json",
            **(more or {}),
        }

    @property
    def _authorization(self) -> dict[str, str]:
        return {"Authorization": f"Token {self.token}"}
