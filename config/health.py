"""For those who watch over the process."""

from django.db import Error, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache

from idempotency import breakers, caching


@never_cache
def livez(request: HttpRequest) -> JsonResponse:
    """Answer 200 while the process serves."""
    return JsonResponse({"status": "ok"})


@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 200 when the database answers, else 503: it alone decides. Redis can only make it "degraded"."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error:
        return JsonResponse({"status": "unavailable", "database": "unavailable"}, status=503)
    caching.get("idempotency:health")  # nobody else may have asked for long
    redis = breakers.state()
    return JsonResponse({"status": redis, "database": "ok", "redis": redis})
