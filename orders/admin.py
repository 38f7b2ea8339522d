from django.contrib import admin
from django.http import HttpRequest

from shop.admin import ReadOnlyAdmin, ReadOnlyInline

from .models import Article, Order, OrderLine


@admin.register(Article)
class ArticleAdmin(admin.ModelAdmin):
    """What is sold; prices may change, orders keep theirs."""

    list_display = ["sku", "name", "price_minor", "currency"]
    search_fields = ["sku", "name"]
    ordering = ["sku"]

    def get_readonly_fields(self, request: HttpRequest, obj: Article | None = None) -> list[str]:
        """Keep the SKU of an article: stock and orders know it by that."""
        return ["sku"] if obj else []


class OrderLineInline(ReadOnlyInline):
    """The lines of one order."""

    model = OrderLine


@admin.register(Order)
class OrderAdmin(ReadOnlyAdmin):
    """Orders, newest first."""

    list_display = ["order_no", "user", "status", "amount", "currency", "created_at"]
    list_filter = ["status"]
    list_select_related = ["user"]
    search_fields = ["order_no", "client_order_no", "cart_id"]
    ordering = ["-pk"]
    inlines = [OrderLineInline]
