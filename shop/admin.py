"""How the shop's rows are shown to staff."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest


class ReadOnly:
    """Rows that change only by the shop's own verbs: a form would save what it read minutes ago."""

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Refuse."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse; the view permission still shows the row."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse."""
        return False


class ReadOnlyAdmin(ReadOnly, admin.ModelAdmin):
    """A page of them."""


class ReadOnlyInline(ReadOnly, admin.TabularInline):
    """A table of them within their parent's page."""
