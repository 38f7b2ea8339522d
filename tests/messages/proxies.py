"""A connection to the broker that freezes, or breaks."""

import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Self
from urllib.parse import urlsplit


class Proxy:
    """Passes everything on between us and a broker; it can be cut, closed and frozen."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.broker = (parts.hostname, parts.port)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        credentials, at, _ = parts.netloc.rpartition("@")
        port = self.listener.getsockname()[1]
        self.url = parts._replace(netloc=f"{credentials}{at}127.0.0.1:{port}").geturl()
        self.open = Event()
        self.running = Event()
        self.open.set()
        self.running.set()
        self.pairs: list[tuple[socket.socket, socket.socket]] = []

    @contextmanager
    def serving(self) -> Iterator[Self]:
        Thread(target=self._serve, daemon=True).start()
        try:
            yield self
        finally:
            self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()
            self.running.set()
            self.cut()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """The broker takes everything and says nothing, as one that is stopped or behind a dead line."""
        self.running.clear()
        try:
            yield
        finally:
            self.running.set()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Every connection ends at once, those that there are and those that are tried."""
        self.open.clear()
        self.cut()
        try:
            yield
        finally:
            self.open.set()

    def cut(self) -> None:
        """Break the connections that there are."""
        pairs, self.pairs = self.pairs, []
        for each in (end for pair in pairs for end in pair):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        with suppress(OSError):  # the listener is closed: the end
            while True:
                client, _address = self.listener.accept()
                if not self.open.is_set():
                    client.close()
                    continue
                pair = (client, socket.create_connection(self.broker))
                self.pairs.append(pair)
                Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, client: socket.socket, broker: socket.socket) -> None:
        with client, broker, suppress(OSError):
            while True:
                for source in select.select([client, broker], [], [])[0]:
                    data = source.recv(65536)
                    self.running.wait()
                    if not data:
                        return
                    (broker if source is client else client).sendall(data)
