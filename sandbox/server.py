"""The providers over HTTP.

Under ``/{provider}``, where a provider is any name:

``POST /charges``  ``{key, order_no, amount_minor, currency}`` → 200 ``{charge}``, 402 when refused
``GET /charges/{key}``  → 200 ``{charge}``, null where nothing is known, 402 when refused
``POST /charges/{key}/close``  → 200 ``{charge}``, null where nothing was charged, and nothing will be
``POST /refunds``  ``{payment_no, number, amount_minor, currency}`` → 200 ``{refund_no}``, 402 when refused

Texts, see ``texts.py``:

``POST /sms/messages``  ``{key, phone, template, …}`` → 200 ``{message}``, 422 when refused, 503 when busy
``GET /sms/messages/{key}``  → 200 ``{message}``, null where nothing is known, 422 when refused
``POST /sms/messages/{key}/close``  → 200 ``{message}``, null where nothing was sent, and nothing will be

For those who watch: ``GET /charges`` and ``GET /charges?order=…`` list what was charged, ``GET /messages``
and ``GET /messages?phone=…`` what was sent; ``POST /rules`` takes one rule (see ``rules.py``), ``DELETE
/rules`` forgets all; ``POST /outage {seconds}`` refuses every connection for so long. Each new charge is told
to the shop; ``POST /plan {url?, copies?, seconds?}`` says where it takes notices, how often and how late (a
list each, from which one is drawn), and ``POST /notices {order, kinds, at_once?}`` sends notices now, in this
order or all at once, and answers what the shop said.
"""

import json
import re
import socket
import time
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from operator import attrgetter
from threading import Thread
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from .faults import BadRequest, Busy, Failure, Silence
from .notifying import Notifier
from .payments import Payments
from .rules import Rules
from .store import Refused, Store
from .texts import Texts


@dataclass
class Sandbox:
    """What all requests share."""

    store: Store = field(default_factory=Store)
    rules: Rules = field(default_factory=Rules)
    notifier: Notifier = field(default_factory=Notifier)
    outage: float = 0.0

    @property
    def payments(self) -> Payments:
        """Those who move money."""
        return Payments(self.store, self.rules, self.notifier)

    @property
    def texts(self) -> Texts:
        """The one who sends texts."""
        return Texts(self.store, self.rules)

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


ROUTES: Final = [
    ("GET", r"/charges", "payments.charges"),
    ("GET", r"/messages", "texts.messages"),
    ("POST", r"/rules", "add_rule"),
    ("DELETE", r"/rules", "clear_rules"),
    ("POST", r"/plan", "payments.plan"),
    ("POST", r"/notices", "payments.notify"),
    ("POST", r"/sms/messages", "texts.send"),
    ("GET", r"/sms/messages/(?P<key>\w+)", "texts.find"),
    ("POST", r"/sms/messages/(?P<key>\w+)/close", "texts.close"),
    ("POST", r"/(?P<provider>\w+)/charges", "payments.charge"),
    ("GET", r"/(?P<provider>\w+)/charges/(?P<key>\w+)", "payments.find"),
    ("POST", r"/(?P<provider>\w+)/charges/(?P<key>\w+)/close", "payments.close"),
    ("POST", r"/(?P<provider>\w+)/refunds", "payments.refund"),
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
            self._send(refusal.status, {"code": str(refusal)})
        except BadRequest as error:
            self._send(400, {"code": str(error)})
        except Busy:
            self._send(503, {"code": "busy"})
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
                return self._call(partial(attrgetter(call)(self.sandbox), **match.groupdict()), content)
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
