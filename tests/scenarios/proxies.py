"""A connection to the database that breaks at the worst moment."""

import re
import select
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from threading import Thread
from urllib.parse import urlsplit

COMMIT = re.compile(rb"(?<![A-Z])COMMIT(?!TED)")  # not AUTOCOMMIT, not READ COMMITTED


class Loss(Enum):
    """What of a COMMIT is lost when the connection breaks."""

    STATEMENT = "it never arrives"
    ANSWER = "it is done, and nobody hears of it"


class Proxy:
    """Passes everything on between a web server and what it uses, until it is told to break a COMMIT."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.server = (parts.hostname, parts.port)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        user = f"{parts.username}@" if parts.username else ""
        port = self.listener.getsockname()[1]
        self.url = parts._replace(netloc=f"{user}127.0.0.1:{port}").geturl()
        self.loss: Loss | None = None

    @contextmanager
    def serving(self) -> Iterator["Proxy"]:
        thread = Thread(target=self.serve, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()
            thread.join()

    def break_next_commit(self, loss: Loss) -> None:
        self.loss = loss

    def serve(self) -> None:
        with suppress(OSError):  # closed: the end
            while True:
                client, _address = self.listener.accept()
                Thread(target=self.connect, args=[client], daemon=True).start()

    def connect(self, client: socket.socket) -> None:
        with client, suppress(OSError), socket.create_connection(self.server) as server:
            others = {client: server, server: client}
            while True:
                for source in select.select([client, server], [], [])[0]:
                    data = source.recv(65536)
                    if not data or not self.pass_on(data, source, others[source]):
                        return

    def pass_on(self, data: bytes, source: socket.socket, target: socket.socket) -> bool:
        """Pass it on; ``False`` breaks the connection."""
        if self.loss and source.getpeername() != self.server and COMMIT.search(data):
            self.break_commit(data, target)
            return False
        target.sendall(data)
        return True

    def break_commit(self, data: bytes, server: socket.socket) -> None:
        loss, self.loss = self.loss, None
        if loss is Loss.ANSWER:
            server.sendall(data)
            server.recv(65536)


class SlowProxy(Proxy):
    """Gives each answer after ``delay`` seconds."""

    delay = 0.0

    def pass_on(self, data: bytes, source: socket.socket, target: socket.socket) -> bool:
        if source.getpeername() == self.server:
            time.sleep(self.delay)
        target.sendall(data)
        return True
