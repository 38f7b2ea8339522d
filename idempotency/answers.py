"""Keeping an answer as an outcome, and answering with it again."""

from collections.abc import AsyncIterator, Iterable
from itertools import chain
from math import inf
from typing import Any, Final

from asgiref.sync import async_to_sync
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from .policies import Policy
from .values import Outcome

KEPT_HEADERS: Final = frozenset(
    {
        "content-disposition",
        "content-encoding",
        "content-language",
        "content-type",
        "etag",
        "link",
        "location",
    }
)
"""Headers that say something of the outcome, not of the exchange; never a cookie."""

OMITTED: Final = "Idempotent-Replay-Body"


def keep(response: HttpResponseBase, policy: Policy, *, request: HttpRequest) -> Outcome | None:
    """Return the outcome to keep of a rendered answer, or ``None`` for one that is not worth it.

    A streaming answer is read here, up to the limit: inside the transaction, so that a stream that breaks
    rolls everything back. What is read is given to the client all the same. An asynchronous stream that
    WSGI serves is read to its end, as Django does anyway.
    """
    if not policy.keeps(response.status_code):
        return None
    kept = KEPT_HEADERS | {name.lower() for name in policy.headers}
    headers = tuple((name, value) for name, value in response.items() if name.lower() in kept)
    body = _body(response, policy.body_limit, request)
    return Outcome(status=response.status_code, headers=headers, body=body)


def replay(outcome: Outcome) -> HttpResponse:
    """Answer as at first: same status, body bytes and kept headers."""
    response = HttpResponse(outcome.body or b"", status=outcome.status)
    del response["Content-Type"]
    for name, value in outcome.headers:
        response[name] = value
    if outcome.body:
        response["Content-Length"] = str(len(outcome.body))
    if outcome.body is None:
        response[OMITTED] = "omitted"
    return response


def _body(response: HttpResponseBase, limit: Any, request: HttpRequest) -> bytes | None:
    streams = isinstance(response, StreamingHttpResponse)
    body = _read(response, limit, request) if streams else response.content  # type: ignore[attr-defined, arg-type]
    return body if len(body) <= limit else None


def _read(response: StreamingHttpResponse, limit: float, request: HttpRequest) -> bytes:
    if response.is_async:
        # under WSGI the generator's event loop ends with this call, and whatever is left of it
        limit = limit if isinstance(request, ASGIRequest) else inf
        return async_to_sync(_read_async)(response, limit)
    stream = iter(response.streaming_content)  # type: ignore[arg-type]
    chunks = _Chunks(limit)
    for chunk in stream:
        if chunks.add(chunk):
            break
    response.streaming_content = chain(chunks, stream)
    return b"".join(chunks)


async def _read_async(response: StreamingHttpResponse, limit: float) -> bytes:
    stream: AsyncIterator[bytes] = aiter(response.streaming_content)  # type: ignore[arg-type]
    chunks = _Chunks(limit)
    async for chunk in stream:
        if chunks.add(chunk):
            break
    response.streaming_content = _chain(chunks, stream)
    return b"".join(chunks)


class _Chunks(list[bytes]):
    def __init__(self, limit: float) -> None:
        self.left = limit

    def add(self, chunk: bytes) -> bool:
        """Add a chunk; tell whether the limit is passed."""
        self.append(chunk)
        self.left -= len(chunk)
        return self.left < 0


async def _chain(chunks: Iterable[bytes], stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
    async for chunk in stream:
        yield chunk
