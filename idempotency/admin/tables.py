"""Tables for people that stay quick at any number of rows."""

import json
from datetime import datetime
from typing import Any, Final

from django.apps import apps
from django.contrib import admin
from django.core.paginator import Paginator
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import cached_property
from django.utils.html import format_html

if apps.is_installed("unfold"):
    from unfold.admin import ModelAdmin  # type: ignore[import-not-found]
else:
    from django.contrib.admin import ModelAdmin

NEWEST: Final = 10_000
"""Rows that a list counts and filters look through: an index for it would be paid for by each claim."""

NONE: Final = "–"


class BoundedPaginator(Paginator):  # type: ignore[type-arg]
    """Counts up to a bound, so that the time does not grow with the table."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return rows.order_by().values("pk")[:NEWEST].count()  # type: ignore[no-any-return]


class ReadOnlyAdmin(ModelAdmin):  # type: ignore[misc]
    """Rows to be read: nothing is added, changed or deleted by hand."""

    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER

    class Media:
        css = {"all": ["idempotency/admin.css"]}

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


def moment(instant: datetime, text: str) -> str:
    """Show a text whose exact instant is told on demand."""
    exact = date_format(timezone.localtime(instant), "DATETIME_FORMAT")
    return format_html('<time title="{}">{}</time>', exact, text)


def indented(text: str) -> str:
    """Return JSON for people, and anything else as it is."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
