from django.contrib import admin

from shop.admin import ReadOnlyAdmin

from .models import StockItem, StockMovement


@admin.register(StockItem)
class StockItemAdmin(ReadOnlyAdmin):
    """What is on hand."""

    list_display = ["sku", "on_hand", "version"]
    search_fields = ["sku"]
    ordering = ["sku"]


@admin.register(StockMovement)
class StockMovementAdmin(ReadOnlyAdmin):
    """The ledger, newest first."""

    list_display = ["reference", "sku", "kind", "quantity", "created_at"]
    list_filter = ["kind"]
    search_fields = ["reference", "sku"]
    ordering = ["-pk"]
