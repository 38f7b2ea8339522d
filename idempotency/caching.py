"""Bytes in the cache that ``IDEMPOTENCY_CACHE`` names: an aid, which may vanish at any moment.

Nothing here raises for a cache that fails, and nothing is unpickled that others may have written: Redis is
spoken to without its backend's serializer.
"""

from collections.abc import Callable
from datetime import timedelta
from functools import cache, cached_property
from importlib import import_module
from typing import Any, Final, TypeVar

from django.core.cache import caches
from django.core.cache.backends.base import BaseCache
from django.core.cache.backends.dummy import DummyCache
from django.core.cache.backends.locmem import LocMemCache
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

from . import breakers, conf

T = TypeVar("T")

DJANGO: Final = "django.core.cache.backends.redis"
DJANGO_REDIS: Final = "django_redis.client"


class Unsupported(ImproperlyConfigured):
    """The cache is of a kind that may unpickle what others have written."""


class LocalStore:
    """This process's own memory, or none."""

    errors: tuple[type[Exception], ...] = ()

    def __init__(self, cache: BaseCache) -> None:
        self.cache = cache

    def get(self, name: str) -> Any:
        return self.cache.get(name)

    def put(self, name: str, value: bytes, span: timedelta) -> None:
        self.cache.set(name, value, span.total_seconds())

    def add(self, name: str, value: bytes, span: timedelta) -> bool:
        return self.cache.add(name, value, span.total_seconds())

    def delete(self, name: str) -> None:
        self.cache.delete(name)


class RedisStore:
    """A Redis server, its replicas, Sentinel or Cluster, as the backend connects to them."""

    def __init__(self, connect: Callable[..., Any], key: Callable[[str], Any]) -> None:
        redis = import_module("redis.exceptions")
        self.errors = (redis.RedisError, redis.RedisClusterException, OSError, UnicodeError)
        self.connect = connect
        self.key = key

    @cached_property
    def reader(self) -> Any:
        return self.connect(write=False)

    @cached_property
    def writer(self) -> Any:
        return self.connect(write=True)

    def get(self, name: str) -> Any:
        return self.reader.get(self.key(name))

    def put(self, name: str, value: bytes, span: timedelta) -> None:
        self.writer.set(self.key(name), value, px=span)

    def add(self, name: str, value: bytes, span: timedelta) -> bool:
        """One command, so that no crash leaves a name without an end."""
        return bool(self.writer.set(self.key(name), value, px=span, nx=True))

    def delete(self, name: str) -> None:
        self.writer.delete(self.key(name))


Store = LocalStore | RedisStore


def is_on() -> bool:
    """Tell whether there is a cache at all."""
    return conf.get("CACHE") is not None


def get(name: str) -> bytes | None:
    """Return the bytes of that name, or ``None``: not there, no cache, or none that answers.

    :raises ImproperlyConfigured: when the cache is of a kind that cannot be used.
    """
    value = _attempt(lambda store: store.get(name), otherwise=None)
    return value if isinstance(value, bytes) else None


def put(name: str, value: bytes, span: timedelta) -> None:
    """Keep bytes for so long, or shorter."""
    _attempt(lambda store: store.put(name, value, span), otherwise=None)


def add(name: str, value: bytes, span: timedelta) -> bool:
    """Keep bytes for so long unless the name is taken; tell whether it was free, or nobody can tell."""
    return _attempt(lambda store: store.add(name, value, span), otherwise=True)


def delete(name: str) -> None:
    _attempt(lambda store: store.delete(name), otherwise=None)


def attempt(alias: str, fn: Callable[[], T], *, otherwise: T) -> T:
    """Call a function that uses a cache of CACHES in its own way, behind the same breaker."""
    return breakers.breaker(alias).call(fn, otherwise=otherwise, errors=store(alias).errors)


@cache
def store(alias: str) -> Store:
    """Return the store of a cache in CACHES. It is one for all threads, with its own pool of connections.

    :raises Unsupported: when it is none of Django's Redis, django-redis and LocMem.
    """
    found: Any = caches.create_connection(alias)
    if isinstance(found, LocMemCache | DummyCache):
        return LocalStore(found)
    if _is(found, DJANGO, "RedisCache"):
        return RedisStore(found._cache.get_client, found.make_and_validate_key)
    client: Any = getattr(found, "client", None)
    if _is(client, f"{DJANGO_REDIS}.default", "DefaultClient") and not hasattr(client, "_ring"):  # no shards
        return RedisStore(client.get_client, client.make_key)
    raise Unsupported(
        f"IDEMPOTENCY_CACHE is {alias!r}, a {type(found).__name__}: name a cache of Django's RedisCache, "
        "django_redis or LocMemCache. Others may unpickle what somebody else has written."
    )


def _attempt(use: Callable[[Store], T], *, otherwise: T) -> T:
    alias = conf.get("CACHE")
    if alias is None:
        return otherwise
    used = store(alias)
    return breakers.breaker(alias).call(lambda: use(used), otherwise=otherwise, errors=used.errors)


def _is(value: Any, module: str, name: str) -> bool:
    """Tell whether a value is of a class that need not be installed."""
    return any(kind.__module__ == module and kind.__name__ == name for kind in type(value).__mro__)


def _start_anew(*, setting: str, **kwargs: Any) -> None:
    if setting == "CACHES":
        store.cache_clear()
        breakers.reset()


setting_changed.connect(_start_anew)
