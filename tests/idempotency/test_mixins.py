"""REST framework's views and viewsets."""

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from rest_framework.test import APIRequestFactory

from idempotency import claims
from idempotency.models import IdempotencyRecord
from idempotency.values import Operation
from tests.lab import effects, rest
from tests.lab.callers import Caller
from tests.lab.models import Effect
from tests.lab.uploads import multipart

pytestmark = pytest.mark.django_db

OPERATION = Operation(name="lab.do", scope="lab", key="key-1")
TWICE = [(201, False), (201, True)]


class TestViewSet:
    def test_guards_create(self, caller: Caller) -> None:
        answers = [caller.post("effects", {"name": "one"}) for _ in range(2)]

        assert [each.summary for each in answers] == TWICE
        assert effects.done() == ["one"]
        assert IdempotencyRecord.objects.get().operation == "POST lab/effects$"

    def test_leaves_an_exempt_action_alone(self, caller: Caller) -> None:
        pk = Effect.objects.create(name="one").pk

        answers = [caller.post(f"effects/{pk}/exempt", key=key) for key in ("abc", "abc", None, "")]

        assert [each.summary for each in answers] == [(202, False)] * 4
        assert effects.records() == 0

    def test_guards_an_action_by_its_own_policy(self, caller: Caller) -> None:
        pk = Effect.objects.create(name="one").pk
        path = f"effects/{pk}/rename"

        assert [caller.post(path).summary for _ in range(2)] == [(200, False), (200, True)]
        assert [caller.post(path, key=None).summary for _ in range(2)] == [(200, False)] * 2
        assert [caller.send("PATCH", path).summary for _ in range(2)] == [(200, False), (200, True)]
        assert effects.done() == ["one", f"POST {pk}", f"POST {pk}", f"POST {pk}", f"PATCH {pk}"]

    def test_leaves_list_retrieve_and_destroy_alone(self, caller: Caller) -> None:
        pk = Effect.objects.create(name="one").pk

        assert caller.send("DELETE", f"effects/{pk}").status == 204
        assert caller.send("DELETE", f"effects/{pk}").status == 404

    def test_refuses_a_method_that_it_has_not(self, caller: Caller) -> None:
        assert caller.send("PATCH", "effects").status == 405
        assert caller.post("uploads/bare", key=None).status == 201
        assert caller.send("PATCH", "uploads").status == 405
        assert effects.records() == 0


class TestHooks:
    def test_decide_for_each_request(self, caller: Caller) -> None:
        headers = {"X-Protect": "1"}

        unprotected = [caller.post("by-request", {"order_no": "7"}) for _ in range(2)]
        protected = [caller.post("by-request", {"order_no": "7", "n": n}, headers=headers) for n in range(2)]

        assert [each.summary for each in unprotected] == [(201, False)] * 2
        assert [each.summary for each in protected] == TWICE
        assert (IdempotencyRecord.objects.get().key, IdempotencyRecord.objects.get().fingerprint) == (
            "7",
            None,
        )

    def test_may_find_no_key(self, caller: Caller) -> None:
        headers = {"X-Protect": "1"}

        answers = [caller.post("by-request", {}, headers=headers) for _ in range(2)]

        assert [each.summary for each in answers] == [(201, False)] * 2

    def test_refuse_an_anonymous_caller(self) -> None:
        request = APIRequestFactory().post("/", headers={"Idempotency-Key": "abc"})

        with pytest.raises(ImproperlyConfigured, match="get_idempotency_scope"):
            rest.Anonymous.as_view()(request)
        assert (effects.done(), effects.records()) == ([], 0)


class TestAccess:
    """SEC-01, HTTP-13"""

    def test_is_checked_by_throttles_each_time(self, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
        first = caller.post("throttled")
        monkeypatch.setattr(rest.Throttled, "closed", 1)

        refused = [caller.post("throttled", key=key) for key in ("key-1", "fresh")]

        assert [(each.summary, each.headers["Retry-After"]) for each in refused] == [((429, False), "7")] * 2
        monkeypatch.undo()
        assert caller.post("throttled").body == first.body
        assert caller.post("throttled", key="fresh").summary == (201, False)

    def test_is_checked_by_permissions_each_time(self, caller: Caller) -> None:
        caller.post("throttled")

        refused = caller.post("throttled", headers={"X-Forbidden": "1"})

        assert refused.summary == (403, False)
        assert b"data" not in refused.body

    def test_comes_before_the_key(self) -> None:
        assert Caller().post("does", key="").status == 401


class TestAnswer:
    @pytest.mark.parametrize("then", ["200", "201", "400"])
    def test_is_finalized_once(self, caller: Caller, then: str) -> None:
        assert caller.post(f"counts?then={then}").headers["X-Finalized"] == "1"

    def test_is_finalized_once_when_it_is_a_replay(self, caller: Caller) -> None:
        caller.post("counts")

        assert caller.post("counts").headers["X-Finalized"] == "1"

    @pytest.mark.parametrize("how", ["", "?stream"])
    def test_that_breaks_takes_the_effect_with_it(self, caller: Caller, how: str) -> None:
        """HTTP-04: else the client would be told of a failure that has happened."""
        assert caller.post(f"breaks{how}").status == 500
        assert (effects.done(), effects.records()) == ([], 0)


@pytest.mark.django_db(transaction=True)
class TestRerun:
    """A conflict after the body was read: the handler reads it again from the start."""

    @pytest.fixture(autouse=True)
    def _trouble(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(effects, "troubles", [effects.conflict() for _ in range(2)])

    @pytest.mark.parametrize(
        ("path", "content", "content_type"),
        [
            (
                "uploads",
                *multipart(("sku", b"TEA"), ("file", b"1,2\n", "a.csv"), ("file", b"3", "b.csv")),
            ),
            ("uploads", b"1,2\n" * 9, "text/csv"),
            ("uploads", b'{"sku": "TEA"}', "application/json"),
            ("uploads", b"sku=TEA", "application/x-www-form-urlencoded"),
            ("streams", b"1,2\n" * 9, "text/csv"),
            ("views/uploads", *multipart(("sku", b"TEA"), ("file", b"1,2\n" * 9, "a.csv"))),
            ("views/uploads", b"1,2\n" * 9, "text/csv"),
        ],
    )
    def test_gives_the_whole_body(self, caller: Caller, path: str, content: bytes, content_type: str) -> None:
        headers = {"Content-Disposition": "attachment; filename=a.csv"}
        first = caller.post(path, content, content_type=content_type, headers=headers)
        expected = caller.post(path, content, key="in peace", content_type=content_type, headers=headers)

        assert effects.troubles == []
        assert (first.status, first.body) == (expected.status, expected.body)
        assert len(effects.done()) == 2

    def test_gives_every_header(self, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
        """Also when the conflict came after the answer was rendered."""
        monkeypatch.setattr(effects, "troubles", [])
        bare = caller.post("rendered/bare", key=None)
        conflicts = [effects.conflict()]
        kind = type(claims.claim("default", OPERATION))
        complete = kind.complete

        def collide(*args: Any, **kwargs: Any) -> bool:
            if conflicts:
                raise conflicts.pop()
            return complete(*args, **kwargs)

        monkeypatch.setattr(kind, "complete", collide)

        assert caller.post("rendered/guarded") == bare
        assert conflicts == []

    def test_ends_in_409(self, caller: Caller, settings: Any) -> None:
        settings.IDEMPOTENCY_RERUNS = 1

        refused = caller.post("uploads")

        assert (refused.status, refused.document["code"]) == (409, "operation_in_progress")
        assert (effects.done(), effects.records()) == ([], 0)

    def test_is_left_to_the_owner_of_the_transaction(
        self, caller: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(connection.settings_dict, name="ATOMIC_REQUESTS", value=True)

        refused = caller.post("uploads")

        assert (refused.status, len(effects.troubles)) == (409, 1)
        assert (effects.done(), effects.records()) == ([], 0)
