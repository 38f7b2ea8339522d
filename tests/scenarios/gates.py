"""Hold a request of a real server at a named point, until the test lets it go on or kills its process.

The request names the point and the test's port in its header ``X-Gate``. At that point the server
connects there, tells its process id, and goes on when the connection ends.
"""

import os
import select
import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import wraps
from threading import Event
from types import TracebackType
from typing import Any, Final, Self

import psutil
from django.db.backends.base.base import BaseDatabaseWrapper
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

from idempotency import claims, signals

POINTS: Final = ("before_claim", "after_claim", "in_handler", "before_commit", "after_commit")
"""Where a process can die. Two more are gates: ``entered``, before any database work, and on MariaDB
``before_takeover``, when an expired record has been found."""

PATIENCE: Final = 20.0
"""Seconds until a gate that nobody reaches, or nobody opens, is an error."""

_gate: ContextVar[tuple[str, int] | None] = ContextVar("gate", default=None)


class GateMiddleware(MiddlewareMixin):
    """In the server: remember the request's gate, and build the gates in when it starts."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        super().__init__(get_response)
        _build_gates()

    def __call__(self, request: HttpRequest) -> Any:
        point, _, port = request.headers.get("X-Gate", "").partition(" ")
        _gate.set((point, int(port)) if port else None)
        if not self.async_mode:
            pass_gate("entered")
        return super().__call__(request)


def pass_gate(point: str) -> None:
    """In the server: stop here when the request asks for it, once."""
    gate = _gate.get()
    if not gate or gate[0] != point:
        return
    _gate.set(None)
    with socket.create_connection(("127.0.0.1", gate[1]), timeout=PATIENCE) as connection:
        connection.sendall(b"%d\n" % os.getpid())
        connection.recv(1)


def _build_gates() -> None:
    import orders.views

    orders.views.pause = lambda request: pass_gate("in_handler")
    for kind in claims.AtomicClaim.__subclasses__():
        kind.attempt = _gated(kind.attempt)
    claims.MySQLClaim._take_over = _before("before_takeover", claims.MySQLClaim._take_over)
    BaseDatabaseWrapper.commit = _before("before_commit", BaseDatabaseWrapper.commit)
    signals.executed.connect(lambda **kwargs: pass_gate("after_commit"), weak=False)


def _gated(attempt: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(attempt)
    def gated(*args: Any, **kwargs: Any) -> Any:
        pass_gate("before_claim")
        found = attempt(*args, **kwargs)
        if found is None:
            pass_gate("after_claim")
        return found

    return gated


def _before(point: str, call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def gated(*args: Any, **kwargs: Any) -> Any:
        pass_gate(point)
        return call(*args, **kwargs)

    return gated


class Held:
    """In the test: one request that stands at a gate."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.pid = int(connection.recv(20))

    def release(self) -> None:
        """Let it go on."""
        self.connection.close()

    def kill(self) -> None:
        """kill -9 its process; return when it and its connections are gone."""
        with suppress(ProcessLookupError):  # somebody else was quicker
            os.kill(self.pid, signal.SIGKILL)
        with suppress(ConnectionError):
            self.connection.recv(1)
        self.connection.close()
        with suppress(psutil.NoSuchProcess):
            psutil.Process(self.pid).wait(PATIENCE)


class Gate:
    """In the test: where requests at the named point report."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.listener.settimeout(PATIENCE)
        self.held: list[Held] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for held in self.held:
            held.release()
        self.listener.close()

    def at(self, point: str) -> Mapping[str, str]:
        """The header of a request that shall be held."""
        return {"X-Gate": f"{point} {self.listener.getsockname()[1]}"}

    def wait(self) -> Held:
        """Return the next request that stands here.

        :raises TimeoutError: when none comes.
        """
        connection, _address = self.listener.accept()
        connection.settimeout(PATIENCE)
        self.held.append(Held(connection))
        return self.held[-1]

    def next(self, *, until: Event) -> Held | None:
        """Return the next request that stands here, or ``None`` when there is none before ``until``."""
        while not until.is_set():
            if select.select([self.listener], [], [], 0.05)[0]:
                return self.wait()
        return None
