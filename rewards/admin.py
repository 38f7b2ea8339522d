from django.contrib import admin

from shop.admin import ReadOnlyAdmin

from .models import Balance, Coupon, PointsEntry


@admin.register(Coupon)
class CouponAdmin(ReadOnlyAdmin):
    """Coupons, newest first."""

    list_display = ["code", "user", "order_no", "campaign", "created_at"]
    list_filter = ["campaign"]
    list_select_related = ["user"]
    search_fields = ["code", "order_no"]
    ordering = ["-pk"]


@admin.register(Balance)
class BalanceAdmin(ReadOnlyAdmin):
    """Who has how many points."""

    list_display = ["user", "points"]
    list_select_related = ["user"]
    search_fields = ["user__username"]
    ordering = ["-points"]


@admin.register(PointsEntry)
class PointsEntryAdmin(ReadOnlyAdmin):
    """The ledger, newest first."""

    list_display = ["order_no", "user", "kind", "points", "created_at"]
    list_filter = ["kind"]
    list_select_related = ["user"]
    search_fields = ["order_no"]
    ordering = ["-pk"]
