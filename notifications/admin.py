from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from shop.admin import ReadOnlyAdmin

from .forms import ContactForm
from .models import Contact, Message, Window
from .phones import masked


@admin.register(Message)
class MessageAdmin(ReadOnlyAdmin):
    """Messages, newest first. Filter by status for those that nobody knows about."""

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
