"""For those who watch over the process."""

from django.conf import settings
from django.db import Error
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache

from idempotency import breakers, caching, relaying


@never_cache
def livez(request: HttpRequest) -> JsonResponse:
    """Answer 200 while the process serves."""
    return JsonResponse({"status": "ok"})


@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 200 when the database answers, else 503: it alone decides. Redis can only make it "degraded"."""
    try:
        outbox = relaying.status()
    except Error:
        return JsonResponse({"status": "unavailable", "database": "unavailable"}, status=503)
    caching.get("idempotency:health")  # nobody else may have asked for long
    redis = breakers.state()
    facts = {"status": redis, "database": "ok", "redis": redis if settings.REDIS_URL else "not used"}
    return JsonResponse({**facts, "outbox": {"due": outbox.due, "dead": outbox.dead}})
