"""A client that behaves: one key for one order, and the same one on each retry."""

import json
import socket
import time
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from threading import Barrier
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from shop.pauses import HEADER as PAUSE_HEADER
from shop.pauses import NAME_HEADER

PATIENCE = timedelta(seconds=20)
"""How long a client repeats before it gives up."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """One order that a buyer wants, and the key that names it."""

    key: str
    cart_id: str
    sku: str
    quantity: int = 1

    @classmethod
    def fresh(cls, *, sku: str) -> "Order":
        """A new order of one piece under a new key."""
        return cls(key=str(uuid.uuid4()), cart_id=f"walk-{uuid.uuid4().hex[:12]}", sku=sku)

    @property
    def body(self) -> bytes:
        """What is sent."""
        lines = [{"sku": self.sku, "quantity": self.quantity}]
        return json.dumps({"cart_id": self.cart_id, "currency": "CNY", "lines": lines}).encode()


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back in the end."""

    status: int
    order_id: str | None
    is_duplicate: bool
    pay_status: str | None
    code: str | None
    waits: int
    """How often the client was told to come again."""


class Client:
    """Sends orders of one user."""

    def __init__(self, url: str, token: str) -> None:
        self.address = urlsplit(url)
        self.headers = {"Authorization": f"Token {token}", "Content-Type": "application/json"}
        self.http = httpx.Client(base_url=url, headers=self.headers, timeout=30, trust_env=False)

    def __enter__(self) -> Self:
        """Use it in a ``with`` block."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the connections, on which the server would wait."""
        self.http.close()

    def send(self, order: Order) -> Answer:
        """Send an order until it is answered."""
        return self._insist(lambda: self._attempt(order))

    def pay(self, order_id: str, method: str = "alipay", *, pause_name: str = "") -> Answer:
        """Pay an order once, and return what came back; the worker announces itself under ``pause_name``."""
        return _answer(self._pay(order_id, method, pause_name), 0)

    def insist_on_paying(self, order_id: str, method: str = "alipay") -> Answer:
        """Pay an order until it is answered."""
        return self._insist(lambda: self._pay(order_id, method, ""))

    def ask_for_code(self, phone: str) -> Answer:
        """Have a verification code sent, and insist until that is answered."""
        body = {"phone": phone, "template": "verify", "kind": "verification"}
        return self._insist(lambda: self._post("/api/sms", json=body))

    def deduct(self, sku: str, order_no: str) -> Answer:
        """Take one piece for an order of somebody else's."""
        body = {"order_no": order_no, "quantity": 1}
        return _answer(self._post(f"/api/stock/{sku}/deductions", json=body), 0)

    def upload(self, file: bytes) -> Answer:
        """Upload a file of orders."""
        headers = {"Authorization": self.headers["Authorization"]}
        files = {"file": ("orders.csv", file, "text/csv")}
        response = httpx.post(
            f"{self.address.geturl()}/api/imports",
            headers=headers,
            files=files,
            data={"mode": "batch"},
            timeout=30,
            trust_env=False,
        )
        return _answer(response, 0)

    def _insist(self, attempt: Callable[[], httpx.Response | None]) -> Answer:
        """Send again after ``Retry-After``, or at once where nobody was there."""
        until = time.monotonic() + PATIENCE.total_seconds()
        waits = 0
        while True:
            response = attempt()
            if time.monotonic() > until or (
                response is not None and response.status_code != httpx.codes.CONFLICT
            ):
                return _answer(response, waits)
            waits += response is not None
            time.sleep(float(response.headers.get("Retry-After", 1)) if response is not None else 0.05)

    def send_at_once(self, orders: Iterable[Order]) -> list[Answer]:
        """Send several orders in the same moment."""
        orders = list(orders)
        barrier = Barrier(len(orders))

        def send(order: Order) -> Answer:
            barrier.wait()
            return self.send(order)

        with ThreadPoolExecutor(len(orders)) as pool:
            return list(pool.map(send, orders))

    def send_and_leave(self, order: Order, *, pause: timedelta, pause_name: str) -> socket.socket:
        """Send an order whose handler pauses, and return the connection with the answer unread."""
        headers = {
            **self.headers,
            "Host": self.address.netloc,
            "Idempotency-Key": order.key,
            "Content-Length": str(len(order.body)),
            PAUSE_HEADER: str(int(pause.total_seconds())),
            NAME_HEADER: pause_name,
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        connection = socket.create_connection((self.address.hostname, self.address.port), timeout=30)
        connection.sendall(f"POST /api/orders HTTP/1.1\r\n{head}\r\n".encode() + order.body)
        return connection

    def _attempt(self, order: Order) -> httpx.Response | None:
        return self._post("/api/orders", content=order.body, headers={"Idempotency-Key": order.key})

    def _pay(self, order_id: str, method: str, pause_name: str) -> httpx.Response | None:
        headers = {PAUSE_HEADER: "0", NAME_HEADER: pause_name} if pause_name else {}
        return self._post(f"/api/orders/{order_id}/pay", json={"method": method}, headers=headers)

    def _post(self, path: str, **content: Any) -> httpx.Response | None:
        try:
            return self.http.post(path, **content)
        except httpx.TransportError:
            return None


def _answer(response: httpx.Response | None, waits: int) -> Answer:
    body: dict[str, Any] = {} if response is None else response.json()
    data = body.get("data", {})
    return Answer(
        status=0 if response is None else response.status_code,
        order_id=data.get("orderId"),
        is_duplicate=data.get("isDuplicate", False),
        pay_status=data.get("payStatus"),
        code=body["code"] if isinstance(body.get("code"), str) else None,
        waits=waits,
    )
