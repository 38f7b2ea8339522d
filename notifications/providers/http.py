"""One HTTP request to a provider, and what is certain after it."""

from typing import Any, Final

import httpx
from django.conf import settings

from .base import NoAnswer, Unreachable

NOTHING_WAS_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


def client(base_url: str, **options: Any) -> httpx.Client:
    """Return a client without retries and used connections: whether something was sent is never in doubt."""
    timeout = httpx.Timeout(
        settings.NOTIFICATIONS_READ_TIMEOUT.total_seconds(),
        connect=settings.NOTIFICATIONS_CONNECT_TIMEOUT.total_seconds(),
    )
    limits = httpx.Limits(max_keepalive_connections=0)
    return httpx.Client(base_url=base_url, timeout=timeout, limits=limits, **options)


def send(http: httpx.Client, method: str, path: str, **content: Any) -> httpx.Response:
    """Return the answer, whatever its status.

    :raises Unreachable: when nothing was sent.
    :raises NoAnswer: when something was, and no answer came.
    """
    try:
        return http.request(method, path, **content)
    except NOTHING_WAS_SENT as error:
        raise Unreachable(type(error).__name__) from error
    except httpx.RequestError as error:
        raise NoAnswer(type(error).__name__) from error


def document(response: httpx.Response) -> dict[str, Any]:
    """Return the JSON object of an answer.

    :raises NoAnswer: when there is none.
    """
    try:
        return dict(response.json())
    except (ValueError, TypeError) as error:
        raise NoAnswer(f"status {response.status_code}, no JSON object") from error
