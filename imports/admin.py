from typing import Any, Final
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from idempotency.exceptions import RetryLater
from idempotency.transitions import InvalidTransition
from shop.admin import ReadOnlyAdmin

from . import running, services
from .forms import UploadForm
from .models import COUNTS, Finding, Import, Mode
from .reading.refusals import FileRefused

SHOWN: Final = 100
"""Findings on the page; the report has the others."""


@admin.register(Import)
class ImportAdmin(ReadOnlyAdmin):
    """Imports, newest first; a page to upload a file, and one on which its progress is watched."""

    list_display = ["file_name", "user", "mode", "status", *COUNTS, "created_at"]
    list_filter = ["status", "mode"]
    list_select_related = ["user"]
    search_fields = ["file_name", "md5", "sha256"]
    ordering = ["-created_at"]
    exclude = ["reasons", "noted", "attempts", "reached"]

    def get_urls(self) -> list[URLPattern]:
        """Add the upload, the fragment that shows progress, and the end of an import."""
        view, name = self.admin_site.admin_view, "imports_import"
        return [
            # each chunk commits on its own
            path("add/", transaction.non_atomic_requests(view(self.upload)), name=f"{name}_add"),
            path("<uuid:import_id>/progress/", view(self.progress), name=f"{name}_progress"),
            path("<uuid:import_id>/cancel/", view(require_POST(self.cancel)), name=f"{name}_cancel"),
            *super().get_urls(),
        ]

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Whether the user may upload."""
        return admin.ModelAdmin.has_add_permission(self, request)

    def upload(self, request: HttpRequest) -> HttpResponse:
        """Take a file, and show its import, or that of the same bytes."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = UploadForm(request.POST or None, request.FILES or None)
        if form.is_valid() and (source := self._received(request, form)):
            return redirect("admin:imports_import_change", source.pk)
        context = {**self._context(request), "form": form, "title": _("Upload a file of orders")}
        return TemplateResponse(request, "admin/imports/import/upload.html", context)

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        """Show how far an import is."""
        source = self.get_object(request, object_id)
        kwargs["extra_context"] = _shown(source) if source else {}
        return super().change_view(request, object_id, *args, **kwargs)

    def progress(self, request: HttpRequest, import_id: UUID) -> HttpResponse:
        """Answer only what changes on the page."""
        source = self._viewed(request, import_id)
        return TemplateResponse(request, "admin/imports/import/progress.html", _shown(source))

    def cancel(self, request: HttpRequest, import_id: UUID) -> HttpResponseRedirect:
        """Stop an import; what is done stays."""
        source = self._viewed(request, import_id)
        if source.user_id != request.user.pk and not self.has_add_permission(request):
            raise PermissionDenied
        try:
            running.cancel(source=source, now=timezone.now())
        except InvalidTransition:
            messages.info(request, _("The import has ended already and cannot be cancelled"))
        else:
            messages.success(request, _("Import cancelled"))
        return redirect("admin:imports_import_change", source.pk)

    def _received(self, request: HttpRequest, form: UploadForm) -> Import | None:
        file = form.cleaned_data["file"]
        try:
            receipt = services.receive(
                user_id=request.user.pk,
                mode=Mode(form.cleaned_data["mode"]),
                period=form.cleaned_data["period"],
                file_name=file.name,
                chunks=file.chunks(),
                now=timezone.now(),
            )
        except FileRefused as refusal:
            form.add_error("file", str(refusal.reason))
            return None
        except RetryLater:
            form.add_error(None, _("The same file is being uploaded right now. Please try again."))
            return None
        if not receipt.is_first:
            messages.info(request, _("File already imported"))
        elif receipt.is_small:
            running.run_now(receipt.source)
        return receipt.source

    def _viewed(self, request: HttpRequest, import_id: UUID) -> Import:
        source = get_object_or_404(Import, pk=import_id)
        if not self.has_view_permission(request, source):
            raise PermissionDenied
        return source

    def _context(self, request: HttpRequest) -> dict[str, Any]:
        return {**self.admin_site.each_context(request), "opts": self.opts}


def _shown(source: Import) -> dict[str, Any]:
    return {
        "source": source,
        "counts": [(Import._meta.get_field(name).verbose_name, getattr(source, name)) for name in COUNTS],
        "findings": source.findings.order_by("line")[:SHOWN],
        "findings_left": max(0, source.noted - SHOWN),
        "Kind": Finding.Kind,
    }
