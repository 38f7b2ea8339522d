"""The wire contract, row by row, as a client of any view sees it."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.authtoken.models import Token

from idempotency import conf, engine
from idempotency.exceptions import OperationInProgress
from idempotency.models import IdempotencyRecord
from tests.lab import effects
from tests.lab.callers import Caller
from tests.lab.models import Effect

pytestmark = pytest.mark.django_db

PROBLEMS = "https://django-idempotency.readthedocs.io/en/latest/problems.html"


@pytest.fixture(params=["does", "views/does"])
def path(request: Any) -> str:
    """A REST framework view and a plain one."""
    return request.param


class TestFirstRequest:
    def test_gets_the_views_own_answer(self, caller: Caller) -> None:
        bare = caller.post("does/bare", {"sku": "TEA"}, key=None)

        assert caller.post("does", {"sku": "TEA"}) == bare
        assert "Idempotent-Replayed" not in bare.headers


class TestRepeat:
    def test_gets_the_first_answer_again(self, caller: Caller, path: str) -> None:
        first = caller.post(path)

        for _ in range(3):
            again = caller.post(path)
            assert (again.status, again.body, again.kept) == (first.status, first.body, first.kept)
            assert again.headers["Idempotent-Replayed"] == "true"
        assert (effects.done(), effects.records()) == (["done"], 1)

    def test_means_the_same_by_value(self, caller: Caller, path: str) -> None:
        """KEY-15"""
        caller.post(path, '{"名": "茶", "n": 1, "list": [1, 2]}'.encode())

        assert caller.post(path, b'{"n":1.0,"list":[1,2],"\\u540d":"\\u8336"}').summary == (201, True)

    def test_from_another_device_of_the_user_is_one(self, caller: Caller) -> None:
        """Session and token of one user are the same caller."""
        token = Token.objects.create(user=User.objects.get(username="alice"))
        caller.post("does")

        again = Caller().post("does", headers={"Authorization": f"Token {token.key}"})

        assert again.summary == (201, True)
        assert again.cookies == ()

    def test_after_a_new_token_is_one(self) -> None:
        user = User.objects.create(username="alice")
        answers = []
        for _ in range(2):
            Token.objects.filter(user=user).delete()
            token = Token.objects.create(user=user)
            answers.append(Caller().post("does", headers={"Authorization": f"Token {token.key}"}))

        assert [each.summary for each in answers] == [(201, False), (201, True)]

    def test_after_expiry_is_a_first_one(self, caller: Caller, path: str) -> None:
        caller.post(path)
        IdempotencyRecord.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

        assert caller.post(path).summary == (201, False)
        assert caller.post(path).summary == (201, True)
        assert (effects.done(), effects.records()) == (["done"] * 2, 1)


class TestReusedKey:
    """KEY-02"""

    @pytest.mark.parametrize(
        "content",
        [
            b'{"quantity": 2}',
            b'{"quantity": null}',
            b"{}",
            b"[]",
            b"",
            b'{"quantity": "1"}',
            b'{"quantity": 1',
        ],
    )
    def test_is_refused(self, caller: Caller, path: str, content: bytes) -> None:
        caller.post(path, b'{"quantity": 1}')
        before = IdempotencyRecord.objects.values().get()

        refused = caller.post(path, content)

        assert refused.status == 422
        assert refused.headers["Content-Type"] == "application/problem+json"
        assert refused.document == {
            "type": f"{PROBLEMS}#idempotency_key_reused",
            "title": "The key belongs to another request",
            "status": 422,
            "detail": "This key was used for another request. Send a new operation with a new key.",
            "code": "idempotency_key_reused",
        }
        assert effects.done() == ["done"]
        assert IdempotencyRecord.objects.values().get() == before
        assert caller.post(path, b'{"quantity": 1}').summary == (201, True)

    def test_is_refused_for_another_query_string(self, caller: Caller, path: str) -> None:
        caller.post(f"{path}?note=1")

        assert caller.post(f"{path}?note=2").status == 422
        assert caller.post(path).status == 422

    def test_is_refused_for_another_content_type(self, caller: Caller) -> None:
        caller.post("views/uploads", b"sku=TEA", content_type="application/x-www-form-urlencoded")

        assert caller.post("views/uploads", b"sku=TEA", content_type="text/plain").status == 422


class TestRunningOperation:
    def test_is_not_run_again(self, caller: Caller, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """HTTP-13"""
        monkeypatch.setattr(engine, "_attempt", in_progress)

        refused = caller.post(path)

        assert (refused.status, refused.headers["Retry-After"]) == (409, "1")
        assert refused.headers["Content-Type"] == "application/problem+json"
        assert refused.document == {
            "type": f"{PROBLEMS}#operation_in_progress",
            "title": "The request is being processed, please wait",
            "status": 409,
            "detail": "The same operation is running now. Repeat with the same key to get its answer.",
            "code": "operation_in_progress",
        }
        assert (effects.done(), effects.records()) == ([], 0)

    def test_says_so_in_chinese(self, caller: Caller, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(engine, "_attempt", in_progress)

        refused = caller.post(path, headers={"Accept-Language": "zh-CN"})

        assert refused.document["title"] == "请求处理中，请稍候"
        assert refused.headers["Content-Language"] == "zh-hans"
        assert "请求处理中" in refused.body.decode()

    def test_tells_when_to_come_again(
        self, caller: Caller, path: str, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.IDEMPOTENCY_RETRY_AFTER = timedelta(seconds=7)
        monkeypatch.setattr(engine, "_attempt", in_progress)

        assert caller.post(path).headers["Retry-After"] == "7"


def in_progress(*args: Any) -> None:
    raise OperationInProgress(conf.get("RETRY_AFTER"))


class TestUnguardedMethod:
    """HTTP-12"""

    @pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
    def test_that_is_safe_is_never_kept(self, caller: Caller, method: str) -> None:
        caller.post("does")
        Effect.objects.create(name="a change")

        answers = [caller.send(method, "does") for _ in range(2)]

        assert [each.summary for each in answers] == [(200, False)] * 2
        assert effects.records() == 1
        if method == "GET":
            assert answers[0].document == {"effects": 2}

    @pytest.mark.parametrize("method", ["PUT", "DELETE"])
    def test_ignores_the_header(self, caller: Caller, method: str) -> None:
        answers = [caller.send(method, "does", key=key) for key in ("abc", "abc", "", None)]

        assert [each.summary for each in answers] == [(201, False)] * 4
        assert (len(effects.done()), effects.records()) == (4, 0)

    def test_is_what_the_policy_says(self, caller: Caller) -> None:
        assert [caller.send("PUT", "guards-put").summary for _ in range(2)] == [(201, False), (201, True)]
        assert [caller.send("POST", "guards-put").summary for _ in range(2)] == [(201, False)] * 2

    def test_patch_is_guarded(self, caller: Caller) -> None:
        assert [caller.send("PATCH", "does").summary for _ in range(2)] == [(201, False), (201, True)]
