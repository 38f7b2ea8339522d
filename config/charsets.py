"""Refuse early what nobody could read: Django trusts whatever charset a client names."""

from http import HTTPStatus
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import gettext as _

from .problems import problem

PROBE: Final = rb"\n+1-.xn--x"
"""Reads the same in every charset that holds ASCII, and in no codec that only transforms text."""


class CharsetMiddleware(MiddlewareMixin):
    """Answer 415 to a charset that is unknown, or none of text: ``hex``, ``zip``, ``idna``."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        """Look at the name alone, before anything of the request is decoded by it."""
        charset = (request.content_params or {}).get("charset")
        if charset is None or is_readable(charset):
            return None
        return problem(
            status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            code="unsupported_media_type",
            detail=_("The charset of the request is unknown. Send UTF-8."),
        )


def is_readable(charset: str) -> bool:
    """Tell whether forms and query strings can be read by a charset of this name."""
    try:
        return PROBE.decode(charset) == PROBE.decode("ascii")
    except (LookupError, ValueError):
        return False
