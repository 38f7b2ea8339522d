"""The views under probe. None does anything for idempotency itself.

Each execution is first noted in a file, outside any transaction, so that executions are counted whatever
becomes of the order. The header ``Probe`` only says which probe a request belongs to.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.http import HttpResponse, StreamingHttpResponse
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from benchmarks.project.models import Order

Handler = Callable[[Request, bool], Any]
"""Takes the request, and whether this is its first execution."""


def drf_view(kind: str, *mixins: type) -> Any:
    """Return the view of this kind, with ``mixins`` before it."""

    def post(self: APIView, request: Request) -> Any:
        return HANDLERS[kind](request, is_first(request))

    return type(f"{kind.title()}View", (*mixins, APIView), {"post": post}).as_view()


def is_first(request: Request) -> bool:
    """Note this execution; tell whether it is the first one of its probe."""
    path = Path(settings.ATTEMPTS, request.headers["Probe"])
    first = not path.exists()
    with path.open("a") as file:
        file.write(f"{os.getpid()}\n")
    return first


def order(request: Request) -> Order:
    amount = int(request.data["amount"])
    return Order.objects.create(sku=request.headers["Probe"], user_id=request.user.pk, amount=amount)


def created(order: Order) -> Response:
    response = Response({"id": order.pk, "user": order.user_id, "amount": order.amount}, status=201)
    response["Location"] = f"/orders/{order.pk}"
    response["ETag"] = f'"{order.pk}"'
    response["X-Order-Id"] = str(order.pk)
    response.set_cookie("last_order", str(order.pk))
    return response


def orders(request: Request, first: bool) -> Response:
    return created(order(request))


def slow(request: Request, first: bool) -> Response:
    made = order(request)
    time.sleep(0.5)
    return created(made)


def raises_once(request: Request, first: bool) -> Response:
    with transaction.atomic():
        made = order(request)
        if first:
            raise RuntimeError("the view's own failure")
    return created(made)


def invalid_once(request: Request, first: bool) -> Response:
    if first:
        raise ValidationError({"amount": ["not yet"]})
    return created(order(request))


def answers_400_once(request: Request, first: bool) -> Response:
    return answers_once(request, first, status=400)


def answers_500_once(request: Request, first: bool) -> Response:
    return answers_once(request, first, status=500)


def answers_once(request: Request, first: bool, *, status: int) -> Response:
    with transaction.atomic():
        made = order(request)
        if first:
            transaction.set_rollback(True)
            return Response({"error": status}, status=status)
    return created(made)


def pauses_after_commit(request: Request, first: bool) -> Response:
    """By itself the order is durable before the pause."""
    made = order(request)
    pause(first)
    return created(made)


def pauses_before_commit(request: Request, first: bool) -> Response:
    with transaction.atomic():
        made = order(request)
        pause(first)
    return created(made)


def pause(first: bool) -> None:
    if first:
        time.sleep(10)


def binary(request: Request, first: bool) -> HttpResponse:
    order(request)
    return HttpResponse(bytes(range(256)) * 4, content_type="application/octet-stream", status=201)


def latin1(request: Request, first: bool) -> HttpResponse:
    order(request)
    return HttpResponse("café".encode("latin-1"), content_type="text/plain; charset=iso-8859-1", status=201)


def stream(request: Request, first: bool) -> StreamingHttpResponse:
    order(request)
    return StreamingHttpResponse(iter([b"a,b\n", b"1,2\n"]), content_type="text/csv", status=201)


def big(request: Request, first: bool) -> Response:
    return Response({"id": order(request).pk, "filling": "x" * 2_000_000}, status=201)


def nothing(request: Request, first: bool) -> Response:
    order(request)
    return Response(status=204)


HANDLERS: dict[str, Handler] = {
    "orders": orders,
    "other": orders,
    "slow": slow,
    "raises-once": raises_once,
    "invalid-once": invalid_once,
    "answers-400-once": answers_400_once,
    "answers-500-once": answers_500_once,
    "pauses-after-commit": pauses_after_commit,
    "pauses-before-commit": pauses_before_commit,
    "binary": binary,
    "latin1": latin1,
    "stream": stream,
    "big": big,
    "nothing": nothing,
}
