"""The body of every success: ``{"code": <HTTP status>, "message": "…", "data": {…}}``."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone
from rest_framework import status as http
from rest_framework.response import Response

from idempotency.http import REPLAYED


def envelope(
    *,
    data: Mapping[str, Any],
    message: str,
    status: int = http.HTTP_200_OK,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Answer ``data``, with camelCase names."""
    body = {"code": status, "message": message, "data": data}
    return Response(body, status=status, headers=dict(headers or {}))


def duplicate(*, data: Mapping[str, Any], message: str) -> Response:
    """Answer a repeat, which is never an error: 200, the first's ``data`` and ``isDuplicate: true``."""
    return envelope(data={**data, "isDuplicate": True}, message=message, headers={REPLAYED: "true"})


def instant(moment: datetime) -> str:
    """Spell a time as ISO 8601 with its zone, such as ``2026-11-30T18:00:00.123456+08:00``."""
    return timezone.localtime(moment).isoformat(timespec="microseconds")
