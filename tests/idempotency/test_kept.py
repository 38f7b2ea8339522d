"""Which answers are kept, and what becomes of the others."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from idempotency.models import IdempotencyRecord
from tests.lab import effects
from tests.lab.callers import Caller

pytestmark = pytest.mark.django_db

RAISED = ("400", "402", "403", "404", "418", "429", "500")
RETURNED = (400, 404, 409, 500, 503)


@pytest.fixture(params=["does", "views/does"])
def path(request: Any) -> str:
    """A REST framework view and a plain one."""
    return request.param


@pytest.fixture(params=[False, True], ids=["autocommit", "atomic requests"])
def _atomic_requests(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", request.param)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_atomic_requests")
class TestAnswerThatIsNotKept:
    """All that the handler wrote is rolled back, and the key is free."""

    def test_when_it_is_returned(self, caller: Caller, path: str) -> None:
        """KEY-24, KEY-25, HTTP-07"""
        for status in RETURNED:
            refused = caller.post(f"{path}?then={status}", key=f"key {status}")

            assert (refused.status, refused.is_replay) == (status, False)
            assert (effects.done(), effects.records()) == ([], 0)

        for status in RETURNED:
            assert caller.post(path, key=f"key {status}").summary == (201, False)

    @pytest.mark.parametrize("path", ["does", "remembers"])
    def test_when_it_is_raised(self, caller: Caller, path: str) -> None:
        """KEY-23, KEY-25, HTTP-07: whatever its status."""
        for status in RAISED:
            assert caller.post(f"{path}?then=!{status}", key=f"key {status}").status == int(status)
            assert (effects.done(), effects.records()) == ([], 0)

        for status in RAISED:
            assert caller.post(path, key=f"key {status}").summary == (201, False)

    def test_when_it_is_raised_by_a_plain_view(self, caller: Caller) -> None:
        assert caller.post("views/does?then=!").status == 500
        assert (effects.done(), effects.records()) == ([], 0)

    @pytest.mark.parametrize("path", ["does", "remembers"])
    def test_is_the_projects_own(self, caller: Caller, path: str) -> None:
        """Its exception handler answers as without us."""
        for status in RAISED:
            bare = caller.post(f"does/bare?then=!{status}", key=None)

            assert caller.post(f"{path}?then=!{status}", key=f"key {status}") == bare

    def test_leaves_hooks_undone(self, caller: Caller) -> None:
        for then in ("400", "!400", "!500"):
            caller.post(f"hooks?then={then}", key=then)

        assert effects.done() == []
        assert caller.post("hooks").status == 201
        assert effects.done() == ["done", "hook"]


class TestRemembered:
    @pytest.mark.parametrize("path", ["remembers", "views/does"])
    def test_4xx_is_kept_when_it_is_returned(self, caller: Caller, path: str) -> None:
        first, again = (caller.post(f"{path}?then=402") for _ in range(2))

        assert (again.status, again.body, again.kept) == (402, first.body, first.kept)
        assert (first.is_replay, again.is_replay) == (False, True)
        assert effects.done() == ["done"]


class TestKeptStatus:
    @pytest.mark.parametrize("status", [200, 201, 202, 204, 299, 300, 303, 304, 399])
    def test_is_every_2xx_and_3xx(self, caller: Caller, path: str, status: int) -> None:
        assert [caller.post(f"{path}?then={status}").summary for _ in range(2)] == [
            (status, False),
            (status, True),
        ]


class TestOwnAnswerToARepeat:
    def test_is_built_from_the_outcome(self, caller: Caller) -> None:
        caller.post("enveloped")

        again = caller.post("enveloped")

        assert again.summary == (200, True)
        assert again.document == {"isDuplicate": True, "first": 201}
        assert IdempotencyRecord.objects.get().label == f"{User.objects.get().pk}_key-1"


class TestExplicitName:
    def test_of_an_operation_is_stored(self, caller: Caller) -> None:
        headers = {"X-Tenant": "a", "X-Message-Id": "m1"}
        answers = [caller.post("views/hooked", data, headers=headers) for data in (b"1", b"2")]

        record = IdempotencyRecord.objects.get()
        assert (record.operation, record.key, record.label) == ("lab.scoped", "m1", "message m1")
        assert [(each.status, each.body) for each in answers] == [(201, b"1"), (208, b"again: 1")]
