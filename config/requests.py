"""Requests of the servers, which Django makes before any middleware is asked."""

from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.core.handlers.wsgi import WSGIRequest


class _Request:
    """Can be made whatever its Content-Type is: ``CharsetMiddleware`` refuses it then."""

    def _set_content_type_params(self, meta: dict[str, Any]) -> None:
        try:
            super()._set_content_type_params(meta)  # type: ignore[misc]
        except (LookupError, ValueError):  # it decodes the query string by that charset
            self.encoding = None
            self.content_type, self.content_params = "", {"charset": ""}


class WSGICharsetRequest(_Request, WSGIRequest):
    """Made by ``config.wsgi``."""


class ASGICharsetRequest(_Request, ASGIRequest):
    """Made by ``config.asgi``."""
