"""What the web adapters share: the header, the request's meaning, kept answers and refusals."""

import json
from collections.abc import Callable
from http import HTTPStatus
from math import ceil
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured
from django.db import connections, transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext_lazy as _

from . import bodies, conf, engine, fingerprints, keys
from .exceptions import (
    ClaimLost,
    DuplicateSubmission,
    IdempotencyError,
    KeyInvalid,
    KeyMissing,
    KeyReused,
    OperationInProgress,
    OutcomeUnknown,
    RetryLater,
    StoreUnavailable,
)
from .policies import Policy
from .values import Operation

View = Callable[..., Any]

REPLAYED: Final = "Idempotent-Replayed"

_PROBLEMS: Final[dict[type[IdempotencyError], tuple[HTTPStatus, Any, Any]]] = {
    KeyMissing: (
        HTTPStatus.BAD_REQUEST,
        _("A key is missing"),
        _("Send an Idempotency-Key header: a fresh value for each operation, the same one on each retry."),
    ),
    KeyInvalid: (HTTPStatus.BAD_REQUEST, _("The key is malformed"), None),
    KeyReused: (HTTPStatus.UNPROCESSABLE_ENTITY, _("The key belongs to another request"), None),
    OperationInProgress: (
        HTTPStatus.CONFLICT,
        _("The request is being processed, please wait"),
        _("The same operation is running now. Repeat with the same key to get its answer."),
    ),
    DuplicateSubmission: (
        HTTPStatus.CONFLICT,
        _("The same request was just submitted"),
        _("Its answer is on its way. If the same is meant once more, send it again in a moment."),
    ),
    ClaimLost: (
        HTTPStatus.CONFLICT,
        _("Another attempt has taken over"),
        _("This attempt took too long. Repeat with the same key to get the answer of the other one."),
    ),
    OutcomeUnknown: (
        HTTPStatus.ACCEPTED,
        _("The outcome is not known yet"),
        _("The other side has not answered. Repeat with the same key to learn the outcome."),
    ),
    StoreUnavailable: (
        HTTPStatus.SERVICE_UNAVAILABLE,
        _("The operation may or may not have happened"),
        _("The database could not be reached in time. Repeat with the same key: it never happens twice."),
    ),
}


def key(request: HttpRequest) -> str | None:
    """Return the request's key, or ``None`` where there is no header.

    :raises KeyInvalid: when the header holds no well-formed key.
    """
    header = request.META.get(f"HTTP_{conf.get('HEADER').upper().replace('-', '_')}")
    return None if header is None else keys.parse(header)


def required(find: Callable[[HttpRequest], str | None], request: HttpRequest, policy: Policy) -> str | None:
    """Return the key that ``find`` finds; ``None`` where there is none and the policy lets that pass.

    :raises KeyMissing, KeyInvalid: otherwise.
    """
    try:
        sent = find(request)
        if sent is None and (policy.required or policy.lease):
            raise KeyMissing
    except IdempotencyError as error:
        engine.refuse(error)
        raise
    return sent


def scope(request: HttpRequest) -> str:
    """Return whose keys these are: the authenticated user's, however they logged in.

    :raises ImproperlyConfigured: for an anonymous caller, who needs a scope of their own.
    """
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        raise ImproperlyConfigured(
            "An anonymous caller has no scope: two strangers with one key would get each other's answers. "
            "Require authentication, or say whose key it is (get_idempotency_scope() of the mixin, "
            "scope= of the decorator)."
        )
    return f"user:{user.pk}"


def fingerprint(request: HttpRequest, policy: Policy, content: Callable[[], bytes] | None = None) -> bytes:
    """Digest what was asked: query string and content, the content by ``content()`` where that is given."""
    body = content() if content else bodies.fingerprint(request, ignored=policy.ignored_fields)
    query = {name: values for name, values in request.GET.lists() if name not in policy.ignored_fields}
    return fingerprints.combine(fingerprints.of_fields(query, {}), body) if query else body


def operation(
    request: HttpRequest, policy: Policy, *, key: str, scope: str, fingerprint: bytes | None, label: str
) -> Operation:
    """Return the operation: a key belongs to caller, operation and resolved path."""
    match = request.resolver_match
    name = policy.operation or f"{request.method} {match.route if match else request.path}"
    return Operation(
        name=name, scope=f"{scope} {request.path}", key=key, fingerprint=fingerprint, label=label
    )


def exempt(view: View, policy: Policy | None) -> View:
    """Take a leased view out of ATOMIC_REQUESTS: its claim must be committed before the work begins."""
    if policy is None or policy.lease is None:
        return view
    return transaction.non_atomic_requests(using=engine.database(policy))(view)


def give_back(view: View, policy: Policy | None) -> View:
    """Give the unguarded methods of a leased view the transaction that :func:`exempt` took from them."""
    if policy is None or policy.lease is None:
        return view
    alias = engine.database(policy)
    return transaction.atomic(alias)(view) if connections[alias].settings_dict["ATOMIC_REQUESTS"] else view


def mark_replayed(response: HttpResponseBase) -> HttpResponseBase:
    """Say that this is the answer to a repeat."""
    response.headers[REPLAYED] = "true"
    return response


def problem(error: IdempotencyError, request: HttpRequest, **members: Any) -> HttpResponse:
    """Answer a refusal as ``application/problem+json`` (RFC 9457), in the language the client accepts.

    ``members`` are added to the document.
    """
    status, title, detail = next(_PROBLEMS[kind] for kind in type(error).__mro__ if kind in _PROBLEMS)
    language = translation.get_language_from_request(request)
    with translation.override(language):
        document = {
            "type": conf.get("PROBLEM_URL").format(code=error.code),
            "title": str(title),
            "status": status.value,
            "detail": str(detail or error),
            "code": error.code,
            **members,
        }
    body = json.dumps(document, ensure_ascii=False)
    response = HttpResponse(body, status=status, content_type="application/problem+json")
    response["Content-Language"] = language
    patch_vary_headers(response, ["Accept-Language"])
    if isinstance(error, RetryLater):
        response["Retry-After"] = str(max(1, ceil(error.retry_after.total_seconds())))
    return response
