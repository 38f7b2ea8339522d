"""A server that answers byte by byte, and no byte is late."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Final

PAUSE: Final = 0.05
"""Seconds between two bytes."""


@contextmanager
def dripping(head: bytes, tail: bytes) -> Iterator[str]:
    """Serve each who asks ``head`` at once and then ``tail`` byte by byte; the address is given."""
    ended = Event()

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65536)
            connection.sendall(head)
            for byte in tail:
                if ended.wait(PAUSE):
                    return
                connection.sendall(bytes([byte]))

    def serve() -> None:
        with suppress(OSError):
            while True:
                Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            ended.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
