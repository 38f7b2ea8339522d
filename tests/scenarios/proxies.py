"""A connection to the database that breaks at the worst moment."""

import re
import select
import socket
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
    """Passes everything on between a web server and its database, until it is told to break a COMMIT."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.database = (parts.hostname, parts.port)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        port = self.listener.getsockname()[1]
        self.url = parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}").geturl()
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
                server = socket.create_connection(self.database)
                Thread(target=self.pass_on, args=[client, server], daemon=True).start()

    def pass_on(self, client: socket.socket, server: socket.socket) -> None:
        with client, server, suppress(OSError):
            while True:
                for source in select.select([client, server], [], [])[0]:
                    data = source.recv(65536)
                    if not data or (self.loss and source is client and self.breaks(data, server)):
                        return
                    (server if source is client else client).sendall(data)

    def breaks(self, data: bytes, server: socket.socket) -> bool:
        if not COMMIT.search(data):
            return False
        loss, self.loss = self.loss, None
        if loss is Loss.ANSWER:
            server.sendall(data)
            server.recv(65536)
        return True
