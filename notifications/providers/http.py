"""One HTTP request to a provider, and what is certain after it."""

from typing import Any, Final

import httpx
from django.conf import settings

from shop import exchanges

from .base import Busy, NoAnswer, Unreachable

NOTHING_WAS_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)

NOTHING_WAS_DONE: Final = frozenset({400, 401, 403, 404, 405, 406, 407, 411, 413, 414, 415, 431})
"""Whoever answers so has not taken the request. A 408, 409, 425 or 499 may be a gateway's, which has passed
it on."""

LONGEST_NUMBER: Final = 255
LONGEST_CODE: Final = 64


def client(base_url: str, **options: Any) -> httpx.Client:
    """Return a client without retries and used connections: whether something was sent is never in doubt."""
    timeout = httpx.Timeout(
        settings.NOTIFICATIONS_READ_TIMEOUT.total_seconds(),
        connect=settings.NOTIFICATIONS_CONNECT_TIMEOUT.total_seconds(),
    )
    limits = httpx.Limits(max_keepalive_connections=0)
    headers = {"Accept-Encoding": "identity"}  # small as they are, and nothing to unpack
    return httpx.Client(base_url=base_url, timeout=timeout, limits=limits, headers=headers, **options)


def send(http: httpx.Client, method: str, path: str, **content: Any) -> httpx.Response:
    """Return the answer, whatever else its status.

    :raises Unreachable: when nothing was sent.
    :raises Busy: on a 429 that says when to come again.
    :raises NoAnswer: when something was, and no answer of a reasonable size came within both timeouts.
    """
    within = settings.NOTIFICATIONS_CONNECT_TIMEOUT + settings.NOTIFICATIONS_READ_TIMEOUT
    try:
        response = exchanges.exchange(http, method, path, within=within, **content)
    except NOTHING_WAS_SENT as error:
        raise Unreachable(type(error).__name__) from error
    except httpx.RequestError as error:
        raise NoAnswer(type(error).__name__) from error
    if exchanges.is_turned_away(response):
        raise Busy("too many requests")
    return response


def document(response: httpx.Response) -> dict[str, Any]:
    """Return the JSON object of an answer.

    :raises NoAnswer: when there is none.
    """
    try:
        return exchanges.json_object(response)
    except ValueError as error:
        raise NoAnswer(f"status {response.status_code}, no JSON object") from error


def number(value: Any) -> str:
    """Return a provider's number, as an answer holds it: text of 1 to 255 printable characters.

    :raises NoAnswer: when it is anything else: who answers so is not the provider.
    """
    return _text(value, longest=LONGEST_NUMBER)


def code(value: Any) -> str:
    """Return the name that a provider gives to its reason; whole sentences, which may repeat a recipient,
    are none.

    :raises NoAnswer: when it is anything else: who answers so is not the provider.
    """
    return _text(value, longest=LONGEST_CODE)


def _text(value: Any, *, longest: int) -> str:
    if isinstance(value, str) and value.isprintable() and 1 <= len(value) <= longest:
        return value
    raise NoAnswer("an answer, and not the provider's")
