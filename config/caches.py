"""The shop's cache: Redis where there is one, else each process's own memory."""

import json
from typing import Any, Final

TIMEOUT: Final = 0.25
"""Seconds that a request waits for Redis, at most; after some failures it is not asked at all for a while."""


class JSONSerializer:
    """In place of pickle, which runs whatever somebody has put into Redis."""

    def dumps(self, value: Any) -> bytes:
        return json.dumps(value).encode()

    def loads(self, data: bytes) -> Any:
        return json.loads(data)


def cache(url: str) -> dict[str, Any]:
    """Return the entry of CACHES for a Redis address, or for none."""
    if not url:
        return {
            "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
            "OPTIONS": {"MAX_ENTRIES": 10_000},
        }
    return {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": url,
        "KEY_PREFIX": "shop",
        "OPTIONS": {
            "serializer": "config.caches.JSONSerializer",
            "socket_timeout": TIMEOUT,
            "socket_connect_timeout": TIMEOUT,
        },
    }
