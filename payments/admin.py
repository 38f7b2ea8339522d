from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from shop.admin import ReadOnlyAdmin

from .models import Notice, Payment, Refund


@admin.register(Payment)
class PaymentAdmin(ReadOnlyAdmin):
    """Charges, newest first."""

    list_display = ["order", "provider", "provider_payment_no", "status", "amount", "currency", "created_at"]
    list_filter = ["status", "provider"]
    list_select_related = ["order"]
    search_fields = ["order__order_no", "provider_payment_no", "provider_key"]
    ordering = ["-pk"]


@admin.register(Refund)
class RefundAdmin(ReadOnlyAdmin):
    """Refunds, newest first."""

    list_display = ["order", "refund_no", "provider_refund_no", "status", "amount", "currency", "created_at"]
    list_filter = ["status"]
    list_select_related = ["order"]
    search_fields = ["order__order_no", "refund_no", "provider_refund_no"]
    ordering = ["-pk"]


@admin.register(Notice)
class NoticeAdmin(ReadOnlyAdmin):
    """What the providers told, newest first. Filter by what became of it for what needs a look."""

    list_display = [
        "event_no",
        "provider",
        "kind",
        "order_no",
        "amount",
        "expected",
        "fate",
        "received_at",
        "settled_at",
    ]
    list_filter = ["fate", "provider", "kind"]
    search_fields = ["order_no", "payment_no", "refund_no", "event_no"]
    ordering = ["-pk"]

    @admin.display(description=_("amount"))
    def amount(self, notice: Notice) -> str:
        """What was told, with its currency."""
        return notice.amount

    @admin.display(description=_("expected"))
    def expected(self, notice: Notice) -> str:
        """What the order says, where that is something else."""
        return notice.expected
