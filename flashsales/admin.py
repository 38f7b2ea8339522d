from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils import timezone

from shop.admin import ReadOnlyAdmin

from .forms import FlashSaleForm
from .models import FlashSale, Ticket


@admin.register(FlashSale)
class FlashSaleAdmin(ReadOnlyAdmin):
    """Sales, newest first. They are opened here, and not changed afterwards."""

    form = FlashSaleForm
    list_display = ["sku", "units", "sold", "starts_at", "ends_at"]
    search_fields = ["sku"]
    ordering = ["-pk"]

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Let those open one whom the permissions allow it."""
        return admin.ModelAdmin.has_add_permission(self, request)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Propose a sale that begins now and lasts a day."""
        now = timezone.now().replace(microsecond=0)
        return {"starts_at": now, "ends_at": now + timedelta(days=1)}

    def save_model(self, request: HttpRequest, obj: FlashSale, form: Any, change: bool) -> None:
        """Nothing is left to do: the form has opened the sale."""


@admin.register(Ticket)
class TicketAdmin(ReadOnlyAdmin):
    """Tickets, newest first. Filter by status for those that wait."""

    list_display = ["number", "sale", "user", "status", "order", "created_at"]
    list_filter = ["status"]
    list_select_related = ["sale", "user", "order"]
    search_fields = ["number", "user__username", "order__order_no"]
    ordering = ["-pk"]
