"""The providers over HTTP.

Under ``/{provider}``, where a provider is any name:

``POST /charges``  ``{key, order_no, amount_minor, currency}`` → 200 ``{charge}``, 402 when refused
``GET /charges/{key}``  → 200 ``{charge}``, null where nothing is known, 402 when refused
``POST /charges/{key}/close``  → 200 ``{charge}``, null where nothing was charged, and nothing will be
``POST /refunds``  ``{payment_no, number, amount_minor, currency}`` → 200 ``{refund_no}``, 402 when refused

For those who watch: ``GET /charges`` and ``GET /charges?order=…`` list what was charged; ``POST /rules``
takes one rule (see ``rules.py``), ``DELETE /rules`` forgets all; ``POST /outage {seconds}`` refuses every
connection for so long. Each new charge is told to the shop; ``POST /plan {url?, copies?, seconds?}`` says
where it takes notices, how often and how late (a list each, from which one is drawn), and ``POST /notices
{order, kinds, at_once?}`` sends notices now, in this order or all at once, and answers what the shop said.
"""

import json
import re
import socket
import time
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from .notifying import Notifier
from .rules import Rule, Rules
from .store import Refused, Store


class BadRequest(Exception):
    """Nothing was done; the message says why."""


class Silence(Exception):
    """No answer at all."""


class Failure(Exception):
    """A 500."""


@dataclass
class Sandbox:
    """What all requests share."""

    store: Store = field(default_factory=Store)
    rules: Rules = field(default_factory=Rules)
    notifier: Notifier = field(default_factory=Notifier)
    outage: float = 0.0

    def charge(self, *, provider: str, key: str, order_no: str, **money: Any) -> dict[str, Any]:
        """Charge, or go wrong as the rules say."""
        check_money(money)
        rule = self.rules.take(call="charge", order=order_no, provider=provider)
        before(rule)
        decline = rule is not None and rule.mode == "decline"
        charge, is_new = self.store.charge(
            provider=provider, key=key, order_no=order_no, decline=decline, **money
        )
        if is_new:
            self.notifier.tell(charge)
        after(rule)
        return {"charge": charge}

    def find(self, *, provider: str, key: str) -> dict[str, Any]:
        """Tell what is known of a key."""
        rule = self.rules.take(call="find", order=None, provider=provider)
        before(rule)
        return {"charge": self.store.find(provider=provider, key=key)}

    def close(self, *, provider: str, key: str) -> dict[str, Any]:
        """Let nothing be charged under a key any more."""
        rule = self.rules.take(call="close", order=None, provider=provider)
        before(rule)
        charge = self.store.close(provider=provider, key=key)
        after(rule)
        return {"charge": charge}

    def refund(self, *, provider: str, payment_no: str, number: str, **money: Any) -> dict[str, Any]:
        """Give money back, or go wrong as the rules say."""
        check_money(money)
        rule = self.rules.take(call="refund", order=self._charge(payment_no)["order_no"], provider=provider)
        before(rule)
        decline = rule is not None and rule.mode == "decline"
        refund_no = self.store.refund(
            provider=provider, payment_no=payment_no, number=number, decline=decline, **money
        )
        self.notifier.tell(self._charge(payment_no), "refunded")
        after(rule)
        return {"refund_no": refund_no}

    def _charge(self, payment_no: str) -> dict[str, Any]:
        """:raises Refused: when nothing was charged under this number."""
        for charge in self.store.charges():
            if charge["payment_no"] == payment_no:
                return charge
        raise Refused("unknown")

    def charges(self, *, order: str | None = None) -> list[dict[str, Any]]:
        """List what was charged."""
        return self.store.charges(order_no=order)

    def add_rule(self, **document: Any) -> dict[str, Any]:
        """Take a rule."""
        try:
            self.rules.add(document)
        except (TypeError, ValueError) as error:
            raise BadRequest(str(error)) from error
        return {}

    def clear_rules(self) -> dict[str, Any]:
        """Let everything go well again."""
        self.rules.clear()
        return {}

    def plan(self, **members: Any) -> dict[str, Any]:
        """Say to whom, how often and how late charges are told."""
        if not members.keys() <= {"url", "copies", "seconds"}:
            raise BadRequest("url, copies or seconds")
        vars(self.notifier).update(members)
        return {}

    def notify(self, *, order: str, kinds: list[str], at_once: bool = False) -> list[dict[str, Any]]:
        """Send notices of the order's charge now."""
        charges = self.store.charges(order_no=order)
        if not charges:
            raise BadRequest("nothing was charged for this order")
        try:
            return self.notifier.send(charges[-1], kinds, at_once=at_once)
        except ValueError as error:
            raise BadRequest(str(error)) from error


ROUTES: Final = [
    ("GET", r"/charges", Sandbox.charges),
    ("POST", r"/rules", Sandbox.add_rule),
    ("DELETE", r"/rules", Sandbox.clear_rules),
    ("POST", r"/plan", Sandbox.plan),
    ("POST", r"/notices", Sandbox.notify),
    ("POST", r"/(?P<provider>\w+)/charges", Sandbox.charge),
    ("GET", r"/(?P<provider>\w+)/charges/(?P<key>\w+)", Sandbox.find),
    ("POST", r"/(?P<provider>\w+)/charges/(?P<key>\w+)/close", Sandbox.close),
    ("POST", r"/(?P<provider>\w+)/refunds", Sandbox.refund),
]


class Handler(BaseHTTPRequestHandler):
    """Translates."""

    protocol_version = "HTTP/1.1"

    def __init__(self, sandbox: Sandbox, *args: Any) -> None:
        self.sandbox = sandbox
        super().__init__(*args)

    def handle_one_request(self) -> None:
        """Be quiet about clients that are gone."""
        try:
            super().handle_one_request()
        except ConnectionError:
            self.close_connection = True

    def do_GET(self) -> None:
        """Answer."""
        self._answer()

    do_POST = do_DELETE = do_GET  # noqa: N815

    def _answer(self) -> None:
        try:
            self._send(200, self._do())
        except Refused as refusal:
            self._send(402, {"code": str(refusal)})
        except BadRequest as error:
            self._send(400, {"code": str(error)})
        except Failure:
            self._send(500, {"code": "internal_error"})
        except Silence:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

    def _do(self) -> Any:
        address = urlsplit(self.path)
        content = {name: values[0] for name, values in parse_qs(address.query).items()}
        content |= self._body()
        if (self.command, address.path) == ("POST", "/outage"):
            return self._begin_outage(**content)
        for method, path, call in ROUTES:
            match = re.fullmatch(path, address.path)
            if match and method == self.command:
                return self._call(partial(call, self.sandbox, **match.groupdict()), content)
        raise BadRequest("there is no such address")

    def _call(self, call: partial[Any], content: dict[str, Any]) -> Any:
        try:
            return call(**content)
        except TypeError as error:
            raise BadRequest(str(error)) from error

    def _body(self) -> dict[str, Any]:
        length = int(self.headers.get("Content-Length", 0))
        if not length:
            return {}
        document = json.loads(self.rfile.read(length))
        if not isinstance(document, dict):
            raise BadRequest("an object is expected")
        return document

    def _begin_outage(self, *, seconds: float) -> dict[str, Any]:
        self.sandbox.outage = seconds
        self.close_connection = True
        Thread(target=self.server.shutdown, daemon=True).start()
        return {}

    def _send(self, status: int, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """Many clients at once."""

    request_queue_size = 128
    daemon_threads = True
    allow_reuse_address = True


def serve(*, host: str, port: int, sandbox: Sandbox) -> None:
    """Serve until the process ends, with an outage whenever one is asked for."""
    while True:
        with Server((host, port), partial(Handler, sandbox)) as server:
            server.serve_forever(poll_interval=0.05)
        time.sleep(sandbox.outage)


def check_money(money: dict[str, Any]) -> None:
    """:raises BadRequest: when the amount is no whole number of minor units above zero."""
    amount = money.get("amount_minor")
    if type(amount) is not int or amount < 1:
        raise BadRequest("amount_minor is a whole number of minor units")


def before(rule: Rule | None) -> None:
    """Go wrong before anything is done."""
    if rule is None:
        return
    if rule.mode != "silent_after":
        time.sleep(rule.seconds)
    if rule.mode == "silent_before":
        raise Silence
    if rule.mode == "error_before":
        raise Failure


def after(rule: Rule | None) -> None:
    """Go wrong once it is done."""
    if rule is None:
        return
    if rule.mode == "silent_after":
        time.sleep(rule.seconds)
        raise Silence
    if rule.mode == "error_after":
        raise Failure
