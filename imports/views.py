"""Imports over HTTP."""

from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from rest_framework import status
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from idempotency.http import REPLAYED
from idempotency.transitions import InvalidTransition
from shop.envelopes import duplicate, envelope

from . import report, running, services
from .exceptions import ImportHasEnded
from .models import Import, Mode
from .serializers import UploadSerializer, import_data

CSV = "text/csv; charset=utf-8"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
SOON = {"Retry-After": "1"}
"""When to ask for progress."""


@method_decorator(transaction.non_atomic_requests, name="dispatch")  # each chunk commits on its own
class UploadView(APIView):
    """``POST /api/imports`` with ``file``, ``mode`` and perhaps ``period``, as multipart."""

    parser_classes = [MultiPartParser]

    def post(self, request: Request) -> Response:
        """Import a file once for each user, mode and content; for a large one answer its progress."""
        serializer = UploadSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        file = serializer.validated_data["file"]
        receipt = services.receive(
            user_id=request.user.pk,
            mode=Mode(serializer.validated_data["mode"]),
            period=serializer.validated_data["period"],
            file_name=file.name,
            chunks=file.chunks(),
            now=timezone.now(),
        )
        if not receipt.is_first:
            return _repeated(receipt.source)
        if receipt.is_small:
            running.run_now(receipt.source)
        return _first(receipt.source)


class ImportView(APIView):
    """One import, for its owner and for staff; others do not see that it exists."""

    def get_import(self, import_id: UUID) -> Import:
        """:raises Http404: for strangers."""
        user = self.request.user
        imports = Import.objects.all() if user.is_staff else Import.objects.filter(user=user)
        return get_object_or_404(imports, pk=import_id)


class DetailView(ImportView):
    """``GET /api/imports/{importId}``"""

    def get(self, request: Request, import_id: UUID) -> Response:
        """Answer how far it is."""
        source = self.get_import(import_id)
        return envelope(data=import_data(source), message=_("Import"))


class ErrorsView(ImportView):
    """``GET /api/imports/{importId}/errors.csv``"""

    def get(self, request: Request, import_id: UUID) -> StreamingHttpResponse:
        """Answer line, column and reason of each rejected line, as a file."""
        source = self.get_import(import_id)
        return StreamingHttpResponse(
            (text.encode() for text in report.rejections(source)),
            content_type=CSV,
            headers={"Content-Disposition": f'attachment; filename="errors-{source.pk}.csv"'},
        )


@method_decorator(transaction.non_atomic_requests, name="dispatch")
class CancelView(ImportView):
    """``POST /api/imports/{importId}/cancel``"""

    def post(self, request: Request, import_id: UUID) -> Response:
        """Stop an import; what is done stays."""
        source = self.get_import(import_id)
        try:
            cancelled = running.cancel(source=source, now=timezone.now())
        except InvalidTransition as error:
            raise ImportHasEnded from error
        source.refresh_from_db()
        answer = envelope if cancelled else duplicate
        return answer(data=import_data(source), message=_("Import cancelled"))


class FormView(APIView):
    """``GET /api/imports/form.csv`` and ``form.xlsx``"""

    def get(self, request: Request, kind: str) -> HttpResponse:
        """Answer an empty file with the headings that an import needs."""
        make, content_type = {"csv": (report.form_csv, CSV), "xlsx": (report.form_xlsx, XLSX)}[kind]
        headers = {"Content-Disposition": f'attachment; filename="orders.{kind}"'}
        return HttpResponse(make(), content_type=content_type, headers=headers)


def _first(source: Import) -> Response:
    headers = {"Location": reverse("import-detail", args=[source.pk])}
    if source.is_finished:
        return envelope(
            data=import_data(source),
            message=_("File imported"),
            status=status.HTTP_201_CREATED,
            headers=headers,
        )
    return _progress(source, headers={**headers, **SOON})


def _repeated(source: Import) -> Response:
    if source.is_finished:
        return duplicate(data=import_data(source), message=_("File already imported"))
    data = {**import_data(source), "isDuplicate": True}
    return _progress(source, data=data, headers={**SOON, REPLAYED: "true"})


def _progress(source: Import, *, headers: dict[str, str], data: dict[str, Any] | None = None) -> Response:
    return envelope(
        data=data or import_data(source),
        message=_("The file is being imported"),
        status=status.HTTP_202_ACCEPTED,
        headers=headers,
    )
