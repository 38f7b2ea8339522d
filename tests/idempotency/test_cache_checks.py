"""A cache that can do harm, or that waits too long, is told before it does."""

from datetime import timedelta
from itertools import count
from types import ModuleType
from typing import Any

import pytest
from django.test import override_settings
from django.urls import path

from idempotency.checks import caches
from idempotency.checks import settings as setting_checks
from idempotency.mixins import IdempotentMixin
from idempotency.policies import Policy
from tests.lab.caches import QUICK, cache
from tests.lab.rest import Does

URL = "redis://127.0.0.1:1/0"
numbers = count(1)


class Submits(IdempotentMixin, Does):
    idempotency_policy = Policy(short_window=timedelta(seconds=1))


urls = ModuleType("urls")
urls.urlpatterns = [path("submits", Submits.as_view()), path("submits/<int:number>", Submits.as_view())]


def fresh_address() -> str:
    """django-redis has one pool for each address, however it is configured."""
    return f"redis://127.0.0.1:1/{next(numbers)}"


def use(settings: Any, entry: dict[str, Any]) -> None:
    settings.CACHES = {**settings.CACHES, "replays": entry}
    settings.IDEMPOTENCY_CACHE = "replays"


def django_redis(**kwargs: Any) -> dict[str, Any]:
    return {**cache("django_redis", fresh_address()), "OPTIONS": {"CONNECTION_POOL_KWARGS": kwargs}}


def redis(**options: Any) -> dict[str, Any]:
    return {**cache("redis", URL), "OPTIONS": options}


class TestKind:
    @pytest.mark.parametrize("kind", ["redis", "django_redis", "locmem"])
    def test_may_be_each_of_these(self, settings: Any, kind: str) -> None:
        use(settings, cache(kind, fresh_address()))

        assert caches.check_kind() + caches.check_connection() == []

    def test_may_be_none(self) -> None:
        assert caches.check_kind() + caches.check_connection() == []

    def test_must_not_unpickle_what_others_wrote(self, settings: Any) -> None:
        use(settings, {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "table"})
        (message,) = caches.check_kind() + caches.check_connection()

        assert (message.id, "DatabaseCache" in message.msg) == ("idempotency.E009", True)

    def test_must_not_be_sharded(self, settings: Any) -> None:
        client = {"CLIENT_CLASS": "django_redis.client.ShardClient"}
        use(settings, {**cache("django_redis", URL), "LOCATION": [URL, URL], "OPTIONS": client})
        (message,) = caches.check_kind()

        assert message.id == "idempotency.E009"

    @override_settings(IDEMPOTENCY_CACHE="nowhere")
    def test_must_be_known(self) -> None:
        (message,) = setting_checks.check_values()

        assert message.id == "idempotency.E001"
        assert caches.check_kind() + caches.check_connection() == []


class TestTimeouts:
    @pytest.mark.parametrize("make", [redis, django_redis])
    @pytest.mark.parametrize(
        "options",
        [{}, {"socket_timeout": 0.25}, {"socket_connect_timeout": 0.25}, {**QUICK, "socket_timeout": 5}],
        ids=["none", "no connect", "no answer", "long"],
    )
    def test_must_both_be_short(self, settings: Any, make: Any, options: dict[str, Any]) -> None:
        use(settings, make(**options))
        (message,) = caches.check_connection()

        assert message.id == "idempotency.W011"
        assert "0.25" in message.hint

    def test_may_stand_where_django_redis_has_them(self, settings: Any) -> None:
        use(settings, {**django_redis(), "OPTIONS": {"SOCKET_TIMEOUT": 0.25, "SOCKET_CONNECT_TIMEOUT": 0.25}})

        assert caches.check_connection() == []

    def test_may_stand_in_the_address(self, settings: Any) -> None:
        address = f"{URL}?socket_timeout=0.25&socket_connect_timeout=0.25"
        use(settings, {**redis(), "LOCATION": address})

        assert caches.check_connection() == []


@pytest.mark.parametrize("make", [redis, django_redis])
def test_bytes_must_stay_bytes(settings: Any, make: Any) -> None:
    use(settings, make(**QUICK, decode_responses=True))
    (message,) = caches.check_connection()

    assert message.id == "idempotency.W012"


class TestWindow:
    @override_settings(ROOT_URLCONF=urls)
    def test_needs_a_cache(self) -> None:
        (message,) = caches.check_windows()

        assert (message.id, message.obj) == (
            "idempotency.W013",
            "tests.idempotency.test_cache_checks.Submits",
        )

    @override_settings(ROOT_URLCONF=urls, IDEMPOTENCY_CACHE="default")
    def test_with_one_is_right(self) -> None:
        assert caches.check_windows() == []
