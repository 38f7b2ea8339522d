"""The cache of replays: one that cannot do harm, and that gives up quickly."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register  # noqa: A004

from idempotency import caching, conf
from idempotency.caching import RedisStore

from .views import routes

LONGEST_TIMEOUT: Final = timedelta(seconds=1)
TIMEOUTS: Final = ("socket_timeout", "socket_connect_timeout")

TIMEOUT_HINT: Final = (
    'Set OPTIONS = {"socket_timeout": 0.25, "socket_connect_timeout": 0.25}; for django-redis '
    'in CONNECTION_POOL_KWARGS (or "SOCKET_TIMEOUT", "SOCKET_CONNECT_TIMEOUT").'
)


@register("idempotency", Tags.caches)
def check_kind(**kwargs: Any) -> list[CheckMessage]:
    alias = _alias()
    try:
        if alias:
            caching.store(alias)
    except caching.Unsupported as error:
        hint = "Add such a cache to CACHES and name it; the other one may stay the default."
        return [Error(str(error), hint=hint, id="idempotency.E009")]
    return []


@register("idempotency", Tags.caches)
def check_connection(**kwargs: Any) -> list[CheckMessage]:
    """What hangs costs its timeout, several times, until it is left alone."""
    options = _options()
    if options is None:
        return []
    messages: list[CheckMessage] = []
    if missing := [name for name in TIMEOUTS if not _is_short(options.get(name))]:
        messages.append(
            Warning(
                f"The cache {_alias()!r} waits for Redis longer than {LONGEST_TIMEOUT.seconds} second: "
                f"{' and '.join(missing)}. When Redis hangs, requests hang as long.",
                hint=TIMEOUT_HINT,
                id="idempotency.W011",
            )
        )
    if options.get("decode_responses"):
        messages.append(
            Warning(
                f"The cache {_alias()!r} has decode_responses: outcomes are bytes, and none is found.",
                hint="Leave it out, or give IDEMPOTENCY_CACHE a cache of its own.",
                id="idempotency.W012",
            )
        )
    return messages


@register("idempotency", Tags.urls)
def check_windows(**kwargs: Any) -> list[CheckMessage]:
    """A window that nobody remembers lets everything through."""
    views = [route.view for route in routes() if route.policy and route.policy.short_window]
    if conf.get("CACHE") is not None:
        return []
    return [
        Warning(
            "Its policy has a short_window, which does nothing without IDEMPOTENCY_CACHE.",
            hint="Name a cache that all processes share in IDEMPOTENCY_CACHE, or leave the window out.",
            obj=f"{view.__module__}.{view.__qualname__}",
            id="idempotency.W013",
        )
        for view in dict.fromkeys(views)
    ]


def _alias() -> str | None:
    """Return the cache's alias; ``None`` where it is unknown, which another check tells."""
    alias: str | None = conf.get("CACHE")
    return alias if alias in settings.CACHES else None


def _options() -> Mapping[str, Any] | None:
    """Return how Redis is connected to; ``None`` where there is none, or a cluster that is not there."""
    alias = _alias()
    try:
        used = caching.store(alias) if alias else None
    except caching.Unsupported:
        return None  # said above
    if not isinstance(used, RedisStore):
        return None
    try:
        return _connection_options(used.reader)
    except used.errors:
        return None


def _connection_options(client: Any) -> Mapping[str, Any]:
    pool = getattr(client, "connection_pool", None)
    options: Mapping[str, Any] = pool.connection_kwargs if pool else client.get_connection_kwargs()
    return options


def _is_short(seconds: Any) -> bool:
    return seconds is not None and seconds <= LONGEST_TIMEOUT.total_seconds()
