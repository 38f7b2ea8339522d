"""Plain Django views: function and class, sync and async."""

import json
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views import View
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from idempotency.decorators import idempotent_view
from idempotency.policies import Policy

from .answers import ANSWERS
from .effects import database, do, stumble
from .models import Effect


def bare_answers(request: HttpRequest, kind: str) -> Any:
    """Give the answer that the path names, to a user."""
    assert request.user.is_authenticated
    do(kind)
    return ANSWERS[kind](request)


answers = idempotent_view()(bare_answers)


async def bare_async_answers(request: HttpRequest, kind: str) -> Any:
    assert (await request.auser()).is_authenticated
    await sync_to_async(do)(kind)
    return ANSWERS[kind](request)


async_answers = idempotent_view()(bare_async_answers)


def bare_does(request: HttpRequest) -> HttpResponse:
    """Do something, and answer as ``?then=`` says."""
    assert request.user.is_authenticated
    do("done")
    then = request.GET.get("then", "201")
    if then.startswith("!"):
        raise RuntimeError(then)
    return JsonResponse({"done": True}, status=int(then))


does = idempotent_view(Policy(remember={402}, ignored_fields=("sent_at",)))(bare_does)
does = csrf_exempt(require_http_methods(["POST", "GET"])(does))


@idempotent_view(
    Policy(operation="lab.scoped", required=False),
    key=lambda request: request.headers.get("X-Message-Id"),
    scope=lambda request: request.headers["X-Tenant"],
    fingerprint=lambda request, policy: None,
    label=lambda request, key: f"message {key}",
    replay=lambda request, outcome: HttpResponse(b"again: " + (outcome.body or b""), status=208),
)
def hooked(request: HttpRequest) -> HttpResponse:
    do("hooked")
    return HttpResponse(request.body, status=201)


@idempotent_view()
def uploads(request: HttpRequest) -> HttpResponse:
    """Tell what was uploaded, to the last byte."""
    do("uploaded")
    files = {name: file.read().decode("latin-1") for name, file in request.FILES.items()}
    body = "" if files or request.POST else request.body.decode("latin-1")
    stumble()
    return JsonResponse({"fields": request.POST.dict(), "files": files, "body": body}, status=201)


@idempotent_view()
class ClassView(View):
    """A class-based view."""

    def get(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse(b"plain")

    def post(self, request: HttpRequest) -> HttpResponse:
        do("class")
        return JsonResponse({"done": "class"}, status=201)


@idempotent_view()
class AsyncClassView(View):
    async def get(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse(b"plain")

    async def post(self, request: HttpRequest) -> HttpResponse:
        await Effect.objects.using(database()).acreate(name="async class")
        return JsonResponse({"done": "async class"}, status=201)


@csrf_exempt
@idempotent_view(scope=lambda request: "lab")
async def async_does(request: HttpRequest) -> Any:
    """Do something through the asynchronous ORM, and answer as the body says."""
    wanted = json.loads(request.body)
    await Effect.objects.using(database()).acreate(name="async")
    if wanted.get("raise"):
        raise RuntimeError("a defect")
    if kind := wanted.get("answer"):
        return ANSWERS[kind](request)
    count = await Effect.objects.using(database()).acount()
    return JsonResponse({"count": count}, status=wanted.get("status", 201))
