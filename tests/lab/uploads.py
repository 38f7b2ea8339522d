"""Multipart content as clients write it."""

from io import RawIOBase
from itertools import chain

CHUNK = bytes(range(256)) * 256


def multipart(*parts: tuple[str, bytes] | tuple[str, bytes, str], boundary: str = "b0") -> tuple[bytes, str]:
    """Return content and content type; a part of three is a file with that name."""
    content = b"".join(
        b"--%s\r\n%s\r\n\r\n%s\r\n" % (boundary.encode(), _head(*part), part[1]) for part in parts
    )
    return content + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


def _head(name: str, content: bytes, filename: str | None = None) -> bytes:
    file = f'; filename="{filename}"\r\nContent-Type: text/csv' if filename else ""
    return f'Content-Disposition: form-data; name="{name}"{file}'.encode()


class Content(RawIOBase):
    """A body of many bytes that is nowhere in memory."""

    def __init__(self, size: int, *, start: bytes = b"", end: bytes = b"") -> None:
        self.length = len(start) + size + len(end)
        self.parts = chain([start], (CHUNK[: size - at] for at in range(0, size, len(CHUNK))), [end])
        self.buffer = b""

    def read(self, size: int = -1) -> bytes:
        while len(self.buffer) < size and (part := next(self.parts, None)) is not None:
            self.buffer += part
        read, self.buffer = self.buffer[:size], self.buffer[size:]
        return read
