"""Every kind of answer that a view can give: each of these functions makes one."""

import gzip
from collections.abc import AsyncIterator, Callable, Iterator
from decimal import Decimal
from io import BytesIO
from typing import Any

from django.http import FileResponse, HttpResponse, HttpResponseRedirect, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.template import engines
from django.template.response import TemplateResponse

from .effects import do

Answer = Callable[[Any], HttpResponseBase]

LARGE = 2 * 1024 * 1024
"""Bytes of a body that is over the default limit."""


def json(request: Any) -> HttpResponseBase:
    body = {"message": "订单已创建", "amount": str(Decimal("19.90"))}
    return JsonResponse(
        body,
        status=201,
        headers={"Location": "/lab/orders/1", "ETag": '"1"'},
        json_dumps_params={"ensure_ascii": False},
    )


def binary(request: Any) -> HttpResponseBase:
    return HttpResponse(b"\xff\xfe\x00\x80", content_type="application/octet-stream")


def other_charset(request: Any) -> HttpResponseBase:
    return HttpResponse("订单已创建", status=201, content_type="text/plain; charset=gb18030")


def cookie(request: Any) -> HttpResponseBase:
    response = HttpResponse("welcome", headers={"WWW-Authenticate": "Basic", "X-RateLimit-Remaining": "9"})
    response.set_cookie("basket", "the first caller's")
    return response


def file(request: Any) -> HttpResponseBase:
    return FileResponse(BytesIO(b"%PDF-1.7" * 9), as_attachment=True, filename="收据.pdf")


def stream(request: Any) -> HttpResponseBase:
    return StreamingHttpResponse(parts(), content_type="text/csv")


def async_stream(request: Any) -> HttpResponseBase:
    return StreamingHttpResponse(async_parts(), content_type="text/csv")


def no_content(request: Any) -> HttpResponseBase:
    return HttpResponse(status=204)


def bare_headers(request: Any) -> HttpResponseBase:
    response = HttpResponse(status=204)
    del response["Content-Type"]
    return response


def redirect(request: Any) -> HttpResponseBase:
    return HttpResponseRedirect("/lab/orders/1")


def vary(request: Any) -> HttpResponseBase:
    return HttpResponse("yours", headers={"Vary": "X-Tenant", "Link": "</lab/orders/2>; rel=next"})


def compressed(request: Any) -> HttpResponseBase:
    body = gzip.compress("订单".encode() * 99, mtime=0)
    return HttpResponse(body, headers={"Content-Encoding": "gzip", "Content-Language": "zh-hans"})


def template(request: Any) -> HttpResponseBase:
    source = engines["django"].from_string("<p>{{ name }} & co</p>")
    return TemplateResponse(request, source, {"name": "<茶>"}, status=201)


def large(request: Any) -> HttpResponseBase:
    return HttpResponse(b"x" * LARGE, status=201, headers={"Location": "/lab/exports/1"})


def large_stream(request: Any) -> HttpResponseBase:
    return StreamingHttpResponse((b"x" * 65536 for _ in range(LARGE // 65536)), status=201)


def large_async_stream(request: Any) -> HttpResponseBase:
    return StreamingHttpResponse(async_large_parts(), status=201)


def parts() -> Iterator[bytes]:
    do("streamed")
    for number in range(5):
        yield f"{number},订单\n".encode()


async def async_parts() -> AsyncIterator[bytes]:
    for number in range(5):
        yield f"{number},订单\n".encode()


async def async_large_parts() -> AsyncIterator[bytes]:
    for _ in range(LARGE // 65536):
        yield b"x" * 65536


WHOLE: tuple[Answer, ...] = (
    json,
    binary,
    other_charset,
    cookie,
    file,
    stream,
    async_stream,
    no_content,
    bare_headers,
    redirect,
    vary,
    compressed,
    template,
)
OVER_LIMIT: tuple[Answer, ...] = (large, large_stream, large_async_stream)
ANSWERS: dict[str, Answer] = {answer.__name__: answer for answer in WHOLE + OVER_LIMIT}
