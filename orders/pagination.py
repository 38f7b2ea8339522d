"""Pages of orders."""

import re
from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _
from rest_framework.exceptions import NotFound
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response

from shop.envelopes import envelope


class OrderPagination(CursorPagination):
    """Newest first; an order that comes in meanwhile shifts no page."""

    ordering = "-pk"
    page_size = 20
    page_size_query_param = "page_size"
    max_page_size = 100

    def decode_cursor(self, request: Request) -> Any:
        """Refuse a position that is no primary key, as any other invalid cursor: 404."""
        cursor = super().decode_cursor(request)
        if cursor and cursor.position is not None and not re.fullmatch(r"[0-9]{1,19}", cursor.position):
            raise NotFound(self.invalid_cursor_message)
        return cursor

    def get_paginated_response(self, data: Sequence[Any]) -> Response:
        """Answer ``orders`` and the addresses of the pages beside it, or null."""
        page = {"orders": data, "next": self.get_next_link(), "previous": self.get_previous_link()}
        return envelope(data=page, message=_("Orders"))
