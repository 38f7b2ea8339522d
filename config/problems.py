"""Every refusal of the API as ``application/problem+json`` (RFC 9457) with a stable ``code``.

The apps raise facts; this is the one table that gives them a status and a text.
"""

import logging
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from django.db import DatabaseError, InterfaceError, OperationalError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views import defaults
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.views import exception_handler as rest_exception_handler
from rest_framework.views import set_rollback

from flashsales import exceptions as flashsales
from idempotency import conf, dialects, http
from idempotency.exceptions import IdempotencyError, OperationInProgress, StoreUnavailable
from idempotency.transitions import InvalidTransition
from imports.exceptions import ImportHasEnded
from imports.reading.refusals import FileRefused
from notifications import exceptions as notifications
from orders.exceptions import OrderNumberReused
from payments import exceptions as payments
from stock.exceptions import DeductionDiffers, InsufficientStock, StockBusy, StockChanged

logger = logging.getLogger("config")

WRONG_STATUS = gettext_lazy("The order's status does not allow this any more")

REFUSALS = {
    InsufficientStock: (
        HTTPStatus.CONFLICT,
        gettext_lazy("Insufficient stock, please choose another article"),
    ),
    StockChanged: (
        HTTPStatus.CONFLICT,
        gettext_lazy("The stock has changed since you looked, please look again"),
    ),
    StockBusy: (
        HTTPStatus.CONFLICT,
        gettext_lazy("Many are buying this article right now, please try again"),
    ),
    DeductionDiffers: (
        HTTPStatus.UNPROCESSABLE_ENTITY,
        gettext_lazy("This order number has taken another quantity of this article"),
    ),
    InvalidTransition: (HTTPStatus.CONFLICT, WRONG_STATUS),
    OrderNumberReused: (
        HTTPStatus.UNPROCESSABLE_ENTITY,
        gettext_lazy("This order number belongs to an order with other lines or another currency"),
    ),
    flashsales.AlreadyBought: (
        HTTPStatus.CONFLICT,
        gettext_lazy("You have bought in this flash sale already; it is one for each customer"),
    ),
    flashsales.SaleNotBegun: (HTTPStatus.CONFLICT, gettext_lazy("The flash sale has not begun yet")),
    flashsales.SaleEnded: (HTTPStatus.CONFLICT, gettext_lazy("The flash sale has ended")),
    payments.PaymentDeclined: (
        HTTPStatus.PAYMENT_REQUIRED,
        gettext_lazy("The payment was declined, please try again or choose another method"),
    ),
    payments.ProviderUnreachable: (
        HTTPStatus.SERVICE_UNAVAILABLE,
        gettext_lazy("The payment provider cannot be reached, please try again later; nothing was charged"),
    ),
    payments.NothingCharged: (
        HTTPStatus.CONFLICT,
        gettext_lazy("Nothing was charged, please try again"),
    ),
    payments.NotPayable: (HTTPStatus.CONFLICT, WRONG_STATUS),
    payments.RefundNotPossible: (HTTPStatus.CONFLICT, WRONG_STATUS),
    payments.RefundExceedsPayment: (
        HTTPStatus.CONFLICT,
        gettext_lazy("The refund is more than what is left of the payment"),
    ),
    payments.RefundDeclined: (
        HTTPStatus.CONFLICT,
        gettext_lazy("The payment provider refused the refund; nothing was given back"),
    ),
    payments.RefundMismatch: (
        HTTPStatus.UNPROCESSABLE_ENTITY,
        gettext_lazy("This refund number belongs to a refund of another amount"),
    ),
    notifications.InvalidPhoneNumber: (
        HTTPStatus.BAD_REQUEST,
        gettext_lazy("This is not a valid phone number"),
    ),
    notifications.SmsRejected: (
        HTTPStatus.UNPROCESSABLE_ENTITY,
        gettext_lazy("The SMS was rejected for good; nothing was sent"),
    ),
    notifications.SmsUnavailable: (
        HTTPStatus.SERVICE_UNAVAILABLE,
        gettext_lazy("The SMS cannot be sent now, please try again later; nothing was sent"),
    ),
    notifications.NothingSent: (
        HTTPStatus.SERVICE_UNAVAILABLE,
        gettext_lazy("Nothing was sent, please try again"),
    ),
    ImportHasEnded: (
        HTTPStatus.CONFLICT,
        gettext_lazy("The import has ended already and cannot be cancelled"),
    ),
}


def exception_handler(error: Exception, context: dict[str, Any]) -> HttpResponse | None:
    """Answer a refusal; ``None`` for what nobody expected, which becomes a 500."""
    request = context["request"]
    if isinstance(error, DatabaseError) and dialects.is_conflict(error):
        error = OperationInProgress(
            conf.get("RETRY_AFTER")
        )  # rivals made the transaction fail: it can be repeated
    if isinstance(error, OperationalError | InterfaceError) and dialects.is_lost(error, connection):
        logger.warning("the connection to the database was lost in the middle of a request", exc_info=error)
        error = StoreUnavailable(conf.get("RETRY_AFTER"))
    if isinstance(error, IdempotencyError):
        set_rollback()
        return http.problem(error, request)
    if isinstance(error, FileRefused):
        set_rollback()
        return problem(status=HTTPStatus.BAD_REQUEST, code=error.code, detail=str(error.reason))
    if type(error) in REFUSALS:
        set_rollback()
        return _refusal(error)
    response = rest_exception_handler(error, context)
    if response is None:
        return None
    return _described(error, response)


def problem(*, status: int, code: str, detail: str, **members: Any) -> JsonResponse:
    """Return one problem document; ``members`` are added to it."""
    document = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": int(status),
        "detail": detail,
        "code": code,
        **members,
    }
    return JsonResponse(
        document,
        status=status,
        content_type="application/problem+json",
        json_dumps_params={"ensure_ascii": False},
    )


def _refusal(error: Any) -> HttpResponse:
    status, detail = REFUSALS[type(error)]
    members = {"orderId": error.order_no} if isinstance(error, OrderNumberReused) else {}
    answer = problem(status=status, code=error.code, detail=str(detail), **members)
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        answer["Retry-After"] = "5"
    if isinstance(error, StockBusy):
        answer["Retry-After"] = f"{error.retry_after.total_seconds():.0f}"
    return answer


def _described(error: Exception, response: HttpResponse) -> HttpResponse:
    """Keep status and headers (``WWW-Authenticate``, ``Retry-After``) of REST framework's own answer."""
    if isinstance(error, ValidationError):
        errors = list(_errors(error.detail))
        detail = "; ".join(f"{item['pointer']}: {item['detail']}" for item in errors)
        answer = problem(status=response.status_code, code="invalid", detail=detail, errors=errors)
    else:
        detail = response.data["detail"]
        answer = problem(status=response.status_code, code=detail.code, detail=str(detail))
    for name, value in response.headers.items():
        answer.headers.setdefault(name, value)
    return answer


def _errors(detail: Any, pointer: str = "#") -> Iterator[dict[str, str]]:
    """Flatten REST framework's tree of errors; the pointer names the field, and the line by its number."""
    if isinstance(detail, ErrorDetail):
        yield {"pointer": pointer, "code": detail.code, "detail": str(detail)}
        return
    branches = detail.items() if isinstance(detail, dict) else enumerate(detail)
    for name, branch in branches:
        leaf = isinstance(branch, ErrorDetail) or name == "non_field_errors"
        yield from _errors(branch, pointer if leaf else f"{pointer}/{name}")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer a request that Django itself refuses, such as one for an unknown host."""
    if not _is_api(request):
        return defaults.bad_request(request, exception)
    return problem(status=400, code="bad_request", detail=_("The request is malformed."))


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer a refused request outside a view of the API."""
    if not _is_api(request):
        return defaults.permission_denied(request, exception)
    return problem(status=403, code="permission_denied", detail=_("This is not allowed."))


def page_not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Answer an unknown address."""
    if not _is_api(request):
        return defaults.page_not_found(request, exception)
    return problem(status=404, code="not_found", detail=_("Nothing is here."))


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer what nobody expected; the log has the traceback."""
    if not _is_api(request):
        return defaults.server_error(request)
    return problem(
        status=500, code="internal_error", detail=_("Something went wrong. Repeat with the same key.")
    )


def _is_api(request: HttpRequest) -> bool:
    return request.path == "/api" or request.path.startswith("/api/")
