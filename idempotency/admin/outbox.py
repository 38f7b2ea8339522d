"""Messages for people: to be read, and dead letters to be decided about."""

import logging
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.timesince import timesince
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from idempotency import relaying
from idempotency.models import MessageState, OutboxMessage, OutboxQuerySet

from . import tables
from .tables import ReadOnlyAdmin, indented, moment

logger = logging.getLogger("idempotency")


@admin.register(OutboxMessage)
class MessageAdmin(ReadOnlyAdmin):
    """Read-only but for what becomes of dead letters, and of sent messages that the broker lost.

    Both need the permission to change messages. To view them is a permission too: payloads may hold
    personal data.
    """

    list_display = ("message_id", "topic", "key", "state", "age", "attempts", "error")
    list_filter = ("state",)
    search_fields = ("key",)
    search_help_text = _("A key or a message's id, in full.")
    sortable_by = ("age",)
    ordering = ("-id",)
    actions = ("requeue", "drop", "send_again")
    fieldsets = (
        (_("Message"), {"fields": ("message_id", "topic", "key", "payload_preview")}),
        (_("State"), {"fields": ("state", "created_at", "due_at", "ended_at")}),
        (_("Attempts"), {"fields": ("attempts", "error", "leased_until")}),
    )

    def has_decide_permission(self, request: HttpRequest) -> bool:
        """Tell whether this user may requeue and drop dead letters."""
        return request.user.has_perm("idempotency.change_outboxmessage")

    def get_queryset(self, request: HttpRequest) -> OutboxQuerySet:
        rows: OutboxQuerySet = super().get_queryset(request).using(relaying.database())
        return rows.defer("payload")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        return (queryset.filter(_has_key(term) | _has_id(term)) if term else queryset), False

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        response: Any = super().changelist_view(request, extra_context)
        if changelist := getattr(response, "context_data", {}).get("cl"):
            response.context_data["subtitle"] = _bounds(changelist)
        return response  # type: ignore[no-any-return]

    @admin.display(description=_("age"), ordering="id")
    def age(self, message: OutboxMessage) -> str:
        return moment(message.created_at, timesince(message.created_at))

    @admin.display(description=_("payload"))
    def payload_preview(self, message: OutboxMessage) -> str:
        return format_html('<pre class="idempotency-body">{}</pre>', indented(message.payload))

    @admin.action(description=_("Send selected dead letters again"), permissions=["decide"])
    def requeue(self, request: HttpRequest, queryset: OutboxQuerySet) -> None:
        count = queryset.requeue()
        text = ngettext(
            "%(count)d dead letter will be sent again.", "%(count)d dead letters will be sent again.", count
        )
        self._tell(request, "requeued", count, text)

    @admin.action(description=_("Drop selected dead letters"), permissions=["decide"])
    def drop(self, request: HttpRequest, queryset: OutboxQuerySet) -> None:
        count = queryset.drop()
        text = ngettext("%(count)d dead letter was dropped.", "%(count)d dead letters were dropped.", count)
        self._tell(request, "dropped", count, text)

    @admin.action(description=_("Send selected sent messages once more"), permissions=["decide"])
    def send_again(self, request: HttpRequest, queryset: OutboxQuerySet) -> None:
        """For a broker that lost what it had taken."""
        count = queryset.send_again()
        text = ngettext(
            "%(count)d message will be sent once more.", "%(count)d messages will be sent once more.", count
        )
        self._tell(request, "sent again", count, text)

    def _tell(self, request: HttpRequest, what: str, count: int, text: str) -> None:
        if not count:
            text = gettext("None of the selected messages is in a state for this: nothing was changed.")
            self.message_user(request, text, messages.WARNING)
            return
        logger.warning("user %s has %s %d messages of the outbox", request.user.pk, what, count)
        self.message_user(request, text % {"count": count}, messages.SUCCESS)


def _has_key(term: str) -> Q:
    """Name the states: the index begins with them."""
    return Q(state__in=MessageState.values, key=term)


def _has_id(term: str) -> Q:
    try:
        return Q(message_id=UUID(term))
    except ValueError:
        return Q(pk=None)


def _bounds(changelist: Any) -> str | None:
    """Say what the list leaves out."""
    if changelist.query or changelist.result_count < tables.NEWEST:
        return None
    return gettext("The first %(count)s messages. A search finds any.") % {"count": f"{tables.NEWEST:,}"}
