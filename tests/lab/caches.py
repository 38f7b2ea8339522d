"""A Redis of the tests' own, and the kinds of cache that lead to it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis

from idempotency import replays
from idempotency.rows import Found
from idempotency.values import Operation
from tests.lab.operations import Lab
from tests.servers.redis import Redis

every_kind = pytest.mark.parametrize("cache_kind", ["redis", "django_redis", "locmem"], indirect=True)
every_redis = pytest.mark.parametrize("cache_kind", ["redis", "django_redis"], indirect=True)

QUICK = {"socket_timeout": 0.25, "socket_connect_timeout": 0.25}


def cache(kind: str, url: str) -> dict[str, Any]:
    """An entry of CACHES."""
    if kind == "locmem":
        return {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "replays"}
    if kind == "redis":
        backend = "django.core.cache.backends.redis.RedisCache"
        return {"BACKEND": backend, "LOCATION": url, "OPTIONS": {**QUICK}}
    options = {"CONNECTION_POOL_KWARGS": {**QUICK}}
    return {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": url, "OPTIONS": options}


class Server(Redis):
    """Can be stopped, paused and asked behind everybody's back."""

    def begin(self) -> "Server":
        self.prepare()
        self.start()
        self.wait()
        return self

    def begin_again(self) -> None:
        """Come back on the same port, empty."""
        self.start()
        self.wait()

    @contextmanager
    def away(self) -> Iterator[None]:
        self.stop()
        try:
            yield
        finally:
            self.begin_again()

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Take connections and answer nothing."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    @property
    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url, socket_timeout=10)

    def names(self) -> list[bytes]:
        with self.client as client:
            return sorted(client.keys("*"))

    def entry_name(self, alias: str, operation: Operation) -> str:
        """Django's own prefix and version stand before ours."""
        return f":1:{replays._name(alias, operation)}"

    def left(self, name: str) -> float:
        """How many seconds a name has; -1: without end, -2: it is not there."""
        with self.client as client:
            milliseconds = client.pttl(name)
        return milliseconds / 1000 if milliseconds >= 0 else milliseconds

    def empty(self) -> None:
        with self.client as client:
            client.flushall()


def cached(lab: Lab, key: str = "key-1") -> Found | None:
    """What the cache alone has for a key of the lab."""
    return replays.get(lab.database, lab.operation(key))
