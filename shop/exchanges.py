"""One HTTP request and its whole answer, bounded in time and size.

A client's own timeouts bound the silence between two packets, not an answer that drips.
"""

import json
import socket
from collections.abc import Mapping
from datetime import timedelta
from threading import Timer
from typing import Any, Final, Self

import httpx

LIMIT: Final = 64 * 1024
"""Bytes of an answer; what the shop asks for takes a few hundred."""

PACKING: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})


def exchange(
    http: httpx.Client, method: str, path: str, *, within: timedelta, **content: Any
) -> httpx.Response:
    """Return the answer, whatever its status, read to its end.

    ``http`` keeps no connections: the one that is made is cut off after ``within``.

    :raises httpx.RequestError: when no answer came, or none within the time and the limit.
    """
    body = b""
    with (
        _Deadline(within) as deadline,
        http.stream(method, path, extensions={"trace": deadline.trace}, **content) as response,
    ):
        for piece in response.iter_bytes():
            body += piece
            if len(body) > LIMIT:
                raise httpx.DecodingError(f"more than {LIMIT} bytes")
    if deadline.has_passed:  # to the reader a connection that is cut off looks like an end
        raise httpx.ReadTimeout(f"no whole answer within {within}")
    headers = [pair for pair in response.headers.multi_items() if pair[0].lower() not in PACKING]
    return httpx.Response(response.status_code, headers=headers, content=body, request=response.request)


def json_object(response: httpx.Response) -> dict[str, Any]:
    """Return the JSON object that an answer is.

    :raises ValueError: when it is none, or none that can be read.
    """
    try:
        document = json.loads(response.content)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if not isinstance(document, dict):
        raise ValueError("no JSON object")
    return document


def is_turned_away(response: httpx.Response) -> bool:
    """Tell whether somebody who counts requests has not let this one in: nothing was done."""
    return response.status_code == httpx.codes.TOO_MANY_REQUESTS and "Retry-After" in response.headers


class _Deadline:
    """Cuts the connection of one exchange, wherever it is by then."""

    def __init__(self, span: timedelta) -> None:
        self.has_passed = False
        self._socket: socket.socket | None = None
        self._timer = Timer(span.total_seconds(), self._pass)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Learn of the connection; https://www.encode.io/httpcore/extensions/#trace"""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._socket = info["return_value"].get_extra_info("socket")
            if self.has_passed:
                self._cut()

    def _pass(self) -> None:
        self.has_passed = True
        self._cut()

    def _cut(self) -> None:
        if self._socket is None:
            return
        try:
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # beneath TLS, which would say goodbye
        except OSError:
            return  # closed already
