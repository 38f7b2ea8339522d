"""Records for people: to be read and searched, never changed; quick at any number of rows."""

import json
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.contrib import admin
from django.db import connections
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.timesince import timesince, timeuntil
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from idempotency import engine
from idempotency.models import IdempotencyRecord, RecordQuerySet, State
from idempotency.policies import Policy

from . import tables
from .tables import NONE, ReadOnlyAdmin, indented, moment

PREVIEWED: Final = 16 * 1024
"""Characters of a body that the page shows."""


class StatusFilter(admin.SimpleListFilter):
    """By the class of the answer's status."""

    title = _("answer")
    parameter_name = "answer"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [
            ("2", _("2xx success")),
            ("3", _("3xx redirect")),
            ("4", _("4xx refusal")),
            ("none", _("a value, no HTTP answer")),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if value is None:
            return queryset
        if value == "none":
            return queryset.filter(status=None)
        first = int(value) * 100
        return queryset.filter(status__gte=first, status__lt=first + 100)


class RetentionFilter(admin.SimpleListFilter):
    """By whether a repeat still gets the outcome."""

    title = _("retention")
    parameter_name = "retention"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("live", _("replayed")), ("expired", _("expired")), ("ever", _("kept for ever"))]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        match self.value():
            case "live":
                return queryset.live()
            case "expired":
                return queryset.expired()
            case "ever":
                return queryset.filter(expires_at=None)
        return queryset


@admin.register(IdempotencyRecord)
class RecordAdmin(ReadOnlyAdmin):
    """Read-only. Needs the permission to view idempotency records, whose bodies may hold personal data."""

    list_display = ("label_or_key", "operation", "scope", "state", "answer", "age", "expiry")
    list_filter = ("state", StatusFilter, RetentionFilter)
    search_fields = ("key",)
    search_help_text = _("A key, a label, the beginning of one, or a record's id.")
    sortable_by = ("age", "expiry")  # those with an index
    ordering = ("-created_at",)
    actions = None
    fieldsets = (
        (_("Operation"), {"fields": ("operation", "scope", "key", "label", "id", "request_digest")}),
        (_("State"), {"fields": ("state", "created_at", "completed_at", "expires_at", "repeats")}),
        (_("Lease"), {"fields": ("leased_until", "attempts", "operation_id", "steps")}),
        (_("Outcome"), {"fields": ("answer", "header_table", "body_preview")}),
    )

    def get_queryset(self, request: HttpRequest) -> RecordQuerySet:
        records: RecordQuerySet = super().get_queryset(request).using(engine.database(Policy()))
        return records.defer("headers", "body")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if not (term := search_term.strip()):
            return (_newest(queryset) if queryset.query.where else queryset), False
        found = queryset.filter(_starts_with(term, queryset.db) | _has_id(term))
        return (found if found.exists() else _newest(queryset).filter(label__startswith=term)), False

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        response: Any = super().changelist_view(request, extra_context)
        if changelist := getattr(response, "context_data", {}).get("cl"):
            response.context_data["subtitle"] = _bounds(changelist)
        return response  # type: ignore[no-any-return]

    @admin.display(description=_("key"))
    def label_or_key(self, record: IdempotencyRecord) -> str:
        return record.label or record.key

    @admin.display(description=_("answer"))
    def answer(self, record: IdempotencyRecord) -> str:
        return NONE if record.status is None else str(record.status)

    @admin.display(description=_("age"), ordering="created_at")
    def age(self, record: IdempotencyRecord) -> str:
        return moment(record.created_at, timesince(record.created_at))

    @admin.display(description=_("expires"), ordering="expires_at")
    def expiry(self, record: IdempotencyRecord) -> str:
        if record.expires_at is None:
            return gettext("never")
        if _is_expired(record):
            return moment(record.expires_at, gettext("expired"))
        return moment(record.expires_at, gettext("in %(span)s") % {"span": timeuntil(record.expires_at)})

    @admin.display(description=_("a repeat"))
    def repeats(self, record: IdempotencyRecord) -> str:
        if record.state != State.COMPLETED:
            return gettext("resumes what was begun") if _is_left(record) else gettext("has to wait")
        return gettext("runs afresh: expired") if _is_expired(record) else gettext("gets this outcome")

    @admin.display(description=_("fingerprint"))
    def request_digest(self, record: IdempotencyRecord) -> str:
        return bytes(record.fingerprint).hex() if record.fingerprint else NONE

    @admin.display(description=_("headers"))
    def header_table(self, record: IdempotencyRecord) -> str:
        rows = format_html_join("", "<tr><th>{}</th><td>{}</td></tr>", json.loads(record.headers or "[]"))
        return format_html('<table class="idempotency-headers">{}</table>', rows) if rows else NONE

    @admin.display(description=_("body"))
    def body_preview(self, record: IdempotencyRecord) -> str:
        if record.body is None:
            return gettext("not kept: it was over the limit") if record.status else NONE
        return format_html('<pre class="idempotency-body">{}</pre>', _preview(bytes(record.body)))


def _starts_with(term: str, alias: str) -> Q:
    """Compare in the way that uses the index, which differs with the database."""
    vendor = connections[alias].vendor
    if vendor == "sqlite":  # its LIKE ignores case and with it the index
        return Q(key__gte=term, key__lt=term + "\U0010ffff")
    if vendor == "mysql":  # Django's startswith compares as BINARY, which the index is not
        return Q(key__istartswith=term)
    return Q(key__startswith=term)


def _has_id(term: str) -> Q:
    try:
        return Q(pk=UUID(term))
    except ValueError:
        return Q(pk=None)


def _newest(records: QuerySet[Any]) -> QuerySet[Any]:
    horizon = _horizon(records.db)
    return records if horizon is None else records.filter(created_at__gt=horizon)


def _horizon(alias: str) -> datetime | None:
    """Return the age, found by its index, from which on filters no longer look; ``None`` in a small table."""
    ages = IdempotencyRecord.objects.using(alias).order_by("-created_at")
    return ages.values_list("created_at", flat=True)[tables.NEWEST : tables.NEWEST + 1].first()


def _bounds(changelist: Any) -> str | None:
    """Say what the list leaves out."""
    if changelist.query:
        return None
    if changelist.has_active_filters:
        if _horizon(changelist.queryset.db) is None:
            return None
        return gettext("Filters look through the newest %(count)s records.") % {"count": f"{tables.NEWEST:,}"}
    if changelist.result_count < tables.NEWEST:
        return None
    return gettext("The first %(count)s records. A search finds any.") % {"count": f"{tables.NEWEST:,}"}


def _is_left(record: IdempotencyRecord) -> bool:
    """Tell whether a lease has ended without an outcome."""
    return record.leased_until is not None and record.leased_until <= timezone.now()


def _is_expired(record: IdempotencyRecord) -> bool:
    return record.expires_at is not None and record.expires_at <= timezone.now()


def _preview(body: bytes) -> str:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return ngettext("binary, %(count)d byte", "binary, %(count)d bytes", len(body)) % {"count": len(body)}
    text = indented(text)
    return text if len(text) <= PREVIEWED else text[:PREVIEWED] + " …"
