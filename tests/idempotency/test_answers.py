"""Each kind of answer, bare, at first and again."""

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

from idempotency.models import IdempotencyRecord
from tests.lab import answers, effects
from tests.lab.callers import Caller

pytestmark = [pytest.mark.django_db, pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")]

ADAPTERS = ("rest", "plain", "async")


def each(kinds: tuple[Callable, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("kind", [kind.__name__ for kind in kinds])


@pytest.mark.parametrize("adapter", ADAPTERS)
@each(answers.WHOLE)
class TestAnswer:
    def test_is_untouched_at_first(self, caller: Caller, adapter: str, kind: str) -> None:
        bare = caller.post(f"{adapter}/bare/{kind}", key=None)

        assert caller.post(f"{adapter}/guarded/{kind}") == bare

    def test_is_the_same_again(self, caller: Caller, adapter: str, kind: str) -> None:
        """HTTP-01, HTTP-02, HTTP-04"""
        first = caller.post(f"{adapter}/guarded/{kind}")
        before = effects.done()

        again = caller.post(f"{adapter}/guarded/{kind}")

        assert (again.status, again.body, again.kept) == (first.status, first.body, first.kept)
        assert again.is_replay
        assert not first.is_replay
        assert again.cookies == ()
        assert effects.done() == before


@pytest.mark.parametrize("adapter", ADAPTERS)
@each(answers.OVER_LIMIT)
class TestAnswerOverTheLimit:
    def test_is_whole_at_first(self, caller: Caller, adapter: str, kind: str) -> None:
        """HTTP-04: also the part of a stream behind the limit."""
        bare = caller.post(f"{adapter}/bare/{kind}", key=None)

        first = caller.post(f"{adapter}/guarded/{kind}")

        assert len(first.body) == answers.LARGE
        assert first == bare

    def test_is_kept_without_its_body(self, caller: Caller, adapter: str, kind: str) -> None:
        """HTTP-05: the repeat says so, and nothing runs again."""
        first = caller.post(f"{adapter}/guarded/{kind}")

        again = caller.post(f"{adapter}/guarded/{kind}")

        assert (again.status, again.body, again.kept) == (201, b"", first.kept)
        assert again.headers["Idempotent-Replay-Body"] == "omitted"
        assert again.is_replay
        assert effects.done() == [kind]


class TestLimit:
    @pytest.mark.parametrize("kind", ["json", "stream"])
    def test_counts_the_bytes_of_the_body(self, caller: Caller, settings: Any, kind: str) -> None:
        length = len(caller.post(f"rest/bare/{kind}").body)
        settings.IDEMPOTENCY_BODY_LIMIT = length
        first = caller.post(f"rest/guarded/{kind}", key="at the limit")
        settings.IDEMPOTENCY_BODY_LIMIT = length - 1
        caller.post(f"rest/guarded/{kind}", key="one over it")

        assert caller.post(f"rest/guarded/{kind}", key="at the limit").body == first.body
        assert caller.post(f"rest/guarded/{kind}", key="one over it").body == b""

    def test_leaves_an_empty_answer_as_it_is(self, caller: Caller) -> None:
        first = caller.post("rest/limited/no_content")

        again = caller.post("rest/limited/no_content")

        assert (again.status, again.body) == (first.status, first.body)
        assert "Idempotent-Replay-Body" not in again.headers


@pytest.mark.parametrize("accept", ["application/json", "text/csv", "application/octet-stream"])
class TestRenderedAnswer:
    def test_is_untouched_at_first(self, caller: Caller, accept: str) -> None:
        bare = caller.post("rendered/bare", key=None, headers={"Accept": accept})

        assert caller.post("rendered/guarded", headers={"Accept": accept}) == bare
        assert bare.headers["Vary"] == "X-Tenant, Accept, Accept-Language, Cookie"

    def test_is_the_same_again(self, caller: Caller, accept: str) -> None:
        first = caller.post("rendered/guarded", headers={"Accept": accept})

        again = caller.post("rendered/guarded", headers={"Accept": accept})

        assert (again.status, again.body, again.kept) == (201, first.body, first.kept)
        assert effects.done() == ["rendered"]


class TestBrowsableAnswer:
    def test_is_the_same_page(self, caller: Caller) -> None:
        html = {"Accept": "text/html"}
        bare = caller.post("rendered/bare", key=None, headers=html)

        first = caller.post("rendered/guarded", headers=html)
        again = caller.post("rendered/guarded", headers=html)

        assert (first.status, len(first.body)) == (bare.status, len(bare.body) + 2 * len("Guarded"))
        assert (again.status, again.body, again.kept) == (first.status, first.body, first.kept)

    def test_is_refused_where_nothing_acceptable_is_rendered(self, caller: Caller) -> None:
        """406 comes before a replay."""
        caller.post("rendered/guarded")

        refused = caller.post("rendered/guarded", headers={"Accept": "image/png"})

        assert (refused.status, refused.is_replay) == (406, False)


class TestKeptHeaders:
    def test_are_those_of_the_outcome(self, caller: Caller) -> None:
        """HTTP-02: nothing of the first exchange is in the record."""
        caller.post("rest/guarded/cookie")

        kept = dict(json.loads(IdempotencyRecord.objects.get().headers))

        assert kept == {"Content-Type": "text/html; charset=utf-8"}

    def test_are_those_that_the_policy_adds(self, caller: Caller) -> None:
        caller.post("rest/limited/cookie")

        assert caller.post("rest/limited/cookie").headers["X-RateLimit-Remaining"] == "9"


class TestCompression:
    def test_by_middleware_is_applied_anew(self, caller: Caller, settings: Any) -> None:
        settings.MIDDLEWARE = ["django.middleware.gzip.GZipMiddleware", *settings.MIDDLEWARE]
        settings.IDEMPOTENCY_BODY_LIMIT = 3 * answers.LARGE
        caller.post("rest/guarded/large")

        plain = caller.post("rest/guarded/large")
        zipped = caller.post("rest/guarded/large", headers={"Accept-Encoding": "gzip"})

        assert (plain.body, plain.headers.get("Content-Encoding")) == (b"x" * answers.LARGE, None)
        assert zipped.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(zipped.body) == plain.body

    def test_by_the_view_is_not_doubled(self, caller: Caller, settings: Any) -> None:
        settings.MIDDLEWARE = ["django.middleware.gzip.GZipMiddleware", *settings.MIDDLEWARE]
        first = caller.post("rest/guarded/compressed", headers={"Accept-Encoding": "gzip"})

        again = caller.post("rest/guarded/compressed", headers={"Accept-Encoding": "gzip"})

        assert again.body == first.body
        assert gzip.decompress(again.body).decode() == "订单" * 99
