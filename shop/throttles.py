"""How often one user may ask."""

from typing import Any

from django.core.cache import DEFAULT_CACHE_ALIAS
from rest_framework import throttling
from rest_framework.request import Request

from idempotency import caching


class UserRateThrottle(throttling.UserRateThrottle):
    """Counts in the cache; while that is away nobody is counted, rather than turned away."""

    def allow_request(self, request: Request, view: Any) -> bool:
        if self.rate is None:
            return True  # nothing was asked of the cache, so that nothing is known of its health
        count = super().allow_request
        return caching.attempt(DEFAULT_CACHE_ALIAS, lambda: count(request, view), otherwise=True)
