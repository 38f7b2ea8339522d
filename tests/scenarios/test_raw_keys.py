"""Keys that no client library would send, written straight to the socket."""

import socket
from urllib.parse import urlsplit

import pytest

from tests.processes import WebServer
from tests.scenarios.conftest import served
from tests.scenarios.effects import NOTHING, ONE_EFFECT, effects

MARK = b"never-echoed"

MALFORMED = {
    "empty": [b""],
    "blank": [b" \t "],
    "emoji": [MARK + "-\N{TEACUP WITHOUT HANDLE}".encode()],
    "latin-1": [MARK + b"-\xe9"],
    "no-break-space": [MARK + b"\xa0"],
    "tab": [MARK + b"\tx"],
    "escape": [MARK + b"\x1b[31m"],
    "delete": [MARK + b"\x7f"],
    "nul": [MARK + b"\x00"],
    "bare-carriage-return": [MARK + b"\rSet-Cookie: a=b"],
    "unclosed-quote": [b'"' + MARK],
    "256-characters": [MARK + b"x" * (256 - len(MARK))],
    "10-kB": [MARK * (10240 // len(MARK))],
    "sent-twice": [MARK, MARK + b"-2"],
    "sent-twice-the-same": [MARK, MARK],
}


def send(server: WebServer, *keys: bytes) -> tuple[int, bytes]:
    """POST an effect with the header's lines as they are; return the status and all that came back."""
    lines = [b"Idempotency-Key: " + key for key in keys]
    head = [b"POST /effects HTTP/1.1", b"Host: 127.0.0.1", b"Authorization: Token demo-alice"]
    tail = [b"Content-Type: application/json", b"Content-Length: 2", b"Connection: close", b"", b"{}"]
    parts = urlsplit(server.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as connection:
        connection.sendall(b"\r\n".join([*head, *lines, *tail]))
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    return int(answer.split(b" ", 2)[1]), answer


@pytest.mark.parametrize("shop", [served("sqlite"), served("sqlite", "asgi")], indirect=True)
class TestRawKey:
    """KEY-12; what the server refuses by itself counts as refused."""

    @pytest.mark.parametrize("keys", [pytest.param(keys, id=name) for name, keys in MALFORMED.items()])
    def test_that_is_malformed_is_refused_and_leaves_no_trace(
        self, shop: WebServer, keys: list[bytes]
    ) -> None:
        before, logged = effects(shop), shop.log.stat().st_size
        status, answer = send(shop, *keys)
        assert status in {400, 431}
        assert MARK not in answer
        assert effects(shop) - before == NOTHING
        with shop.log.open("rb") as log:
            log.seek(logged)
            assert MARK not in log.read()

    @pytest.mark.parametrize(
        "key", [b"%0d%0aSet-Cookie:a=b", b'"quoted, with a comma"', b"x" * 255, b"~!@#$^&*()'`|{}[]<>?"]
    )
    def test_of_printable_characters_is_taken_as_it_is(self, shop: WebServer, key: bytes) -> None:
        before = effects(shop)
        status, answer = send(shop, key)
        assert status == 201
        assert effects(shop) - before == ONE_EFFECT
        assert b"Set-Cookie" not in answer
        assert send(shop, key)[0] == 201
        assert effects(shop) - before == ONE_EFFECT
