import logging
from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from shop.admin import ReadOnlyAdmin

from .deciding import decide
from .forms import ContactForm
from .models import Contact, Message, Window
from .phones import masked

logger = logging.getLogger("notifications")


@admin.register(Message)
class MessageAdmin(ReadOnlyAdmin):
    """Messages, newest first. Filter by status for those that nobody knows about.

    Who has looked at the provider's own pages, and may change messages, says what became of them.
    """

    list_display = [
        "number",
        "channel",
        "to",
        "template",
        "kind",
        "biz_id",
        "status",
        "failure",
        "created_at",
    ]
    list_filter = ["status", "channel", "kind", "failure"]
    search_fields = ["number", "biz_id", "campaign_id", "provider_no", "provider_key"]
    ordering = ["-pk"]
    actions = ["was_sent", "was_not_sent"]

    def has_decide_permission(self, request: HttpRequest) -> bool:
        """Tell whether this user may say what became of a message."""
        return request.user.has_perm("notifications.change_message")

    @transaction.non_atomic_requests  # to decide commits its claim first
    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """List them."""
        return super().changelist_view(request, extra_context)

    @admin.action(description=_("Selected unknown messages were sent"), permissions=["decide"])
    def was_sent(self, request: HttpRequest, queryset: QuerySet[Message]) -> None:
        """Close the matter."""
        self._decide(request, queryset, was_sent=True)

    @admin.action(
        description=_("Selected unknown messages were not sent: free their windows"), permissions=["decide"]
    )
    def was_not_sent(self, request: HttpRequest, queryset: QuerySet[Message]) -> None:
        """Let the same text be sent again."""
        self._decide(request, queryset, was_sent=False)

    def _decide(self, request: HttpRequest, queryset: QuerySet[Message], *, was_sent: bool) -> None:
        numbers = list(queryset.values_list("number", flat=True))
        settled = [number for number in numbers if decide(number=number, was_sent=was_sent)]
        text = _("Settled: {settled}. Left as they are, because somebody knows or asks: {left}.")
        text = str(text).format(settled=len(settled), left=len(numbers) - len(settled))
        self.message_user(request, text, messages.SUCCESS if settled else messages.WARNING)
        for number in settled:
            logger.warning(
                "user %s says that %s was %ssent", request.user.pk, number, "" if was_sent else "not "
            )

    @admin.display(description=_("recipient"))
    def to(self, message: Message) -> str:
        """The recipient, with its middle hidden."""
        return message.masked_recipient


@admin.register(Window)
class WindowAdmin(ReadOnlyAdmin):
    """Which message stands for which text, until when."""

    list_display = ["message", "opened_at", "ends_at"]
    list_select_related = ["message"]
    search_fields = ["message__number", "message__biz_id"]
    ordering = ["-pk"]


@admin.register(Contact)
class ContactAdmin(admin.ModelAdmin):
    """Where customers can be reached; the list hides the middle."""

    form = ContactForm
    list_display = ["user", "phone_masked", "email_masked"]
    list_select_related = ["user"]
    raw_id_fields = ["user"]
    ordering = ["-pk"]

    @admin.display(description=_("telephone"))
    def phone_masked(self, contact: Contact) -> str:
        """The number."""
        return masked(contact.phone) if contact.phone else ""

    @admin.display(description=_("e-mail"))
    def email_masked(self, contact: Contact) -> str:
        """The address."""
        return masked(contact.email) if contact.email else ""
