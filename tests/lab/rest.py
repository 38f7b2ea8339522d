"""REST framework views: each answer bare and guarded, and one that does as the request says."""

import csv
from collections.abc import Iterable
from decimal import Decimal
from hashlib import blake2b
from io import StringIO
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, StreamingHttpResponse
from rest_framework import exceptions
from rest_framework.decorators import action
from rest_framework.parsers import FileUploadParser, FormParser, JSONParser, MultiPartParser
from rest_framework.permissions import BasePermission, IsAuthenticated
from rest_framework.renderers import BaseRenderer, BrowsableAPIRenderer, JSONRenderer, TemplateHTMLRenderer
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet, ModelViewSet

from idempotency import conf
from idempotency.mixins import IdempotentMixin
from idempotency.policies import Policy
from idempotency.values import Outcome

from .answers import ANSWERS
from .effects import database, do, stumble
from .models import Effect


class CSVRenderer(BaseRenderer):
    media_type = "text/csv"
    format = "csv"

    def render(self, data: Any, *args: Any, **kwargs: Any) -> str:
        text = StringIO()
        csv.writer(text).writerows(data.items())
        return text.getvalue()


class BinaryRenderer(BaseRenderer):
    media_type = "application/octet-stream"
    format = "bin"
    charset = None
    render_style = "binary"

    def render(self, data: Any, *args: Any, **kwargs: Any) -> bytes:
        return b"\xff\x00" + repr(data).encode("utf-16")


class LabView(APIView):
    throttle_classes: list[type[BaseThrottle]] = []
    parser_classes = [JSONParser, FormParser, MultiPartParser]


class Answers(LabView):
    """Gives the answer that the path names."""

    def post(self, request: Any, kind: str) -> Any:
        do(kind)
        return ANSWERS[kind](request._request)


class GuardedAnswers(IdempotentMixin, Answers):
    pass


class Rendered(LabView):
    """Renders data as the client accepts it."""

    renderer_classes = [JSONRenderer, CSVRenderer, BinaryRenderer, BrowsableAPIRenderer, TemplateHTMLRenderer]

    def post(self, request: Any) -> Response:
        do("rendered")
        data = {"message": "订单已创建", "amount": Decimal("19.90")}
        return Response(data, status=201, headers={"Location": "/lab/orders/1", "Vary": "X-Tenant"})


class GuardedRendered(IdempotentMixin, Rendered):
    pass


class Refused(exceptions.APIException):
    status_code = 402
    default_code = "declined"


RAISED: dict[str, Exception] = {
    "400": exceptions.ValidationError({"quantity": ["too many"]}),
    "401": exceptions.NotAuthenticated(),
    "402": Refused("declined"),
    "403": PermissionDenied(),
    "404": Http404(),
    "418": KeyError("teapot"),
    "429": exceptions.Throttled(wait=7),
    "500": RuntimeError("a defect"),
}


class Does(LabView):
    """Does something, then answers as ``?then=`` says: a status to return, or with ``!`` to raise."""

    def post(self, request: Any, number: int = 0) -> Response:
        do("done")
        then = request.query_params.get("then", "201")
        if then.startswith("!"):
            raise RAISED[then[1:]]
        return Response({"data": request.data, "number": number}, status=int(then))

    put = delete = patch = post

    def get(self, request: Any, number: int = 0) -> Response:
        return Response({"effects": Effect.objects.using(database()).count()})

    def get_exception_handler(self) -> Any:
        """The project's own handler, and a status of ours for what it does not know."""
        project = super().get_exception_handler()

        def handler(exception: Exception, context: dict[str, Any]) -> Any:
            if isinstance(exception, KeyError):
                return Response({"teapot": True}, status=418)
            return project(exception, context)

        return handler


class GuardedDoes(IdempotentMixin, Does):
    pass


class Hooks(GuardedDoes):
    """Does something more after the commit."""

    def post(self, request: Any, number: int = 0) -> Response:
        transaction.on_commit(lambda: do("hook"), using=database())
        return super().post(request, number)


class Optional(IdempotentMixin, Does):
    idempotency_policy = Policy(required=False)


class Remembers(IdempotentMixin, Does):
    idempotency_policy = Policy(remember={402})


class GuardsPut(IdempotentMixin, Does):
    idempotency_policy = Policy(methods=frozenset({"put"}))


class Anonymous(IdempotentMixin, Does):
    authentication_classes = []
    permission_classes = []


class Scoped(Anonymous):
    def get_idempotency_scope(self) -> str:
        return f"tenant:{self.request.headers['X-Tenant']}"


class Limited(IdempotentMixin, Answers):
    idempotency_policy = Policy(body_limit=10, headers=("X-RateLimit-Remaining",))


class Uploads(LabView):
    """Tells what was uploaded, to the last byte."""

    parser_classes = [MultiPartParser, FormParser, JSONParser, FileUploadParser]

    def post(self, request: Any) -> Response:
        do("uploaded")
        files = {name: [file.read().decode("latin-1") for file in self.files(name)] for name in request.FILES}
        fields = {name: value for name, value in request.data.items() if name not in files}
        stumble()
        return Response({"fields": fields, "files": files}, status=201)

    def files(self, name: str) -> list[Any]:
        files = self.request.FILES
        return files.getlist(name) if hasattr(files, "getlist") else [files[name]]


class GuardedUploads(IdempotentMixin, Uploads):
    idempotency_policy = Policy(ignored_fields=("sent_at", "client.sent_at"))


class ReadsDataFirst(BasePermission):
    def has_permission(self, request: Any, view: Any) -> bool:
        return request.data is not None


class ReadFirst(GuardedUploads):
    permission_classes = [IsAuthenticated, ReadsDataFirst]


class Streams(LabView):
    """Reads the body itself, as a stream."""

    parser_classes = []

    def post(self, request: Any) -> Response:
        do("read")
        read = measure(iter(lambda: request._request.read(65536), b""))
        stumble()
        return Response(read)


class GuardedStreams(IdempotentMixin, Streams):
    pass


class Measures(LabView):
    """Tells size and digest of the uploaded files."""

    parser_classes = [MultiPartParser, FileUploadParser]

    def post(self, request: Any) -> Response:
        do("measured")
        with request.FILES["file"] as file:  # nobody else closes FileUploadParser's
            return Response(measure(file.chunks()))


class GuardedMeasures(IdempotentMixin, Measures):
    pass


def measure(chunks: Iterable[bytes]) -> dict[str, Any]:
    size, digest = 0, blake2b(digest_size=16)
    for chunk in chunks:
        size += len(chunk)
        digest.update(chunk)
    return {"size": size, "digest": digest.hexdigest()}


class EffectViewSet(IdempotentMixin, ModelViewSet):
    """A viewset with an action that is exempt, and one with a policy of its own."""

    throttle_classes: list[type[BaseThrottle]] = []
    lookup_value_regex = "[0-9]+"

    def get_queryset(self) -> Any:
        return Effect.objects.using(database()).exclude(name="hidden")

    def create(self, request: Any) -> Response:
        do(request.data["name"])
        return Response({"name": request.data["name"]}, status=201)

    @action(detail=True, methods=["post"], idempotency_policy=None)
    def exempt(self, request: Any, pk: str) -> Response:
        do("exempt")
        return Response(status=202)

    @action(detail=True, methods=["post", "patch"], idempotency_policy=Policy(required=False))
    def rename(self, request: Any, pk: str) -> Response:
        do(f"{request.method} {self.get_object().pk}")
        return Response({"renamed": pk})


class Enveloped(IdempotentMixin, GenericViewSet):
    """Answers a repeat in its own way."""

    throttle_classes: list[type[BaseThrottle]] = []

    def create(self, request: Any) -> Response:
        do("created")
        return Response({"isDuplicate": False, "header": conf.get("HEADER")}, status=201)

    def get_idempotency_label(self, key: str) -> str:
        return f"{self.request.user.pk}_{key}"

    def get_replay_response(self, outcome: Outcome) -> Response:
        return Response({"isDuplicate": True, "first": outcome.status})


class Counts(IdempotentMixin, LabView):
    """Counts how often REST framework finalizes and renders."""

    def post(self, request: Any) -> Response:
        do("done")
        return Response({"answer": 42}, status=int(request.query_params.get("then", "201")))

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        response["X-Finalized"] = int(response.get("X-Finalized", 0)) + 1
        return response


class Breaks(IdempotentMixin, LabView):
    """Does something, and cannot give its answer."""

    def post(self, request: Any) -> Any:
        do("done")
        if "stream" in request.query_params:
            return StreamingHttpResponse(1 / 0 for _ in range(1))
        return Response({"answer": object()})


class ByRequest(IdempotentMixin, Does):
    """Protects what the client asks it to protect."""

    def get_idempotency_policy(self) -> Policy | None:
        return Policy(required=False) if "X-Protect" in self.request.headers else None

    def get_idempotency_key(self) -> str | None:
        return self.request.data.get("order_no")

    def get_idempotency_fingerprint(self, policy: Policy) -> bytes | None:
        return None


class Throttled(GuardedDoes):
    """Lets nobody through, once a test says so."""

    closed = False

    def check_throttles(self, request: Any) -> None:
        if self.closed:
            raise exceptions.Throttled(wait=7)

    def check_permissions(self, request: Any) -> None:
        super().check_permissions(request)
        if "X-Forbidden" in request.headers:
            self.permission_denied(request)
