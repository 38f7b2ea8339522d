"""The header and the refusals, over HTTP, on all adapters."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import RequestFactory

from idempotency import http
from idempotency.exceptions import KeyMissing, OperationInProgress, StoreUnavailable
from idempotency.models import IdempotencyRecord
from tests.lab import effects
from tests.lab.callers import Answer, Caller
from tests.lab.operations import retention

pytestmark = pytest.mark.django_db

CHINESE = {"Accept-Language": "zh-CN,zh;q=0.9"}


def nothing_happened() -> bool:
    return effects.done() == [] and effects.records() == 0


def is_problem(answer: Answer, status: int, code: str) -> bool:
    return (answer.status, answer.headers["Content-Type"], answer.document["code"]) == (
        status,
        "application/problem+json",
        code,
    )


@pytest.fixture(params=["does", "views/does", "optional"])
def path(request: Any) -> str:
    """Views of both adapters, and one where the key is optional."""
    return request.param


class TestKey:
    def test_is_one_in_every_form(self, caller: Caller, path: str) -> None:
        """KEY-06"""
        first = caller.post(path, key="abc-123")

        repeats = [caller.post(path, key=key) for key in ['"abc-123"', "  abc-123  ", "abc-123"]]

        assert [(each.status, each.is_replay, each.body) for each in repeats] == [(201, True, first.body)] * 3
        assert (effects.done(), effects.records()) == (["done"], 1)

    @pytest.mark.parametrize(
        "key", ["", "   ", '""', "a" * 256, "a,b", '"a', "tab\tinside", "caf\xe9", "\xf0\x9f\x98\x80"]
    )
    def test_that_is_malformed_is_refused(self, caller: Caller, path: str, key: str) -> None:
        """KEY-07, KEY-09, KEY-12"""
        refused = caller.post(path, key=key)

        assert is_problem(refused, 400, "idempotency_key_invalid")
        assert nothing_happened()

    def test_that_is_too_long_is_never_cut(self, caller: Caller, path: str) -> None:
        """KEY-09"""
        answers = [caller.post(path, {"quantity": end}, key="k" * 299 + str(end)) for end in (1, 2)]

        assert [answer.status for answer in answers] == [400, 400]
        assert nothing_happened()
        assert caller.post(path, key="k" * 255).status == 201
        assert caller.post(path, key="k" * 255).is_replay

    def test_counts_upper_and_lower_case(self, caller: Caller, path: str) -> None:
        """KEY-10"""
        answers = [caller.post(path, {"key": key}, key=key) for key in ("Abc-1", "abc-1")]

        assert [(each.status, each.is_replay) for each in answers] == [(201, False)] * 2
        assert effects.records() == 2

    def test_that_is_missing_is_refused_where_it_is_required(self, caller: Caller) -> None:
        """KEY-08"""
        for path in ("does", "views/does"):
            assert is_problem(caller.post(path, key=None), 400, "idempotency_key_missing")
        assert nothing_happened()

    def test_that_is_missing_protects_nothing_where_it_is_optional(self, caller: Caller) -> None:
        """KEY-08"""
        answers = [caller.post("optional", data, key=None) for data in ({"a": 1}, {"a": 1}, {"a": 2})]

        assert [each.status for each in answers] == [201] * 3
        assert (effects.done(), effects.records()) == (["done"] * 3, 0)

    def test_may_come_in_another_header(self, caller: Caller, settings: Any) -> None:
        settings.IDEMPOTENCY_HEADER = "X-Request-Token"

        answers = [caller.post("does", key=None, headers={"X-Request-Token": "abc"}) for _ in range(2)]

        assert [each.is_replay for each in answers] == [False, True]

    def test_may_be_optional_by_setting(self, caller: Caller, settings: Any) -> None:
        settings.IDEMPOTENCY_REQUIRED = False

        assert caller.post("does", key=None).status == 201

    def test_with_markup_is_escaped_nowhere_since_it_is_nowhere(self, caller: Caller) -> None:
        refused = caller.post("does", key="<script>\x7f")

        assert b"script" not in refused.body
        assert "script" not in str(refused.headers)


class TestProblem:
    def test_in_english(self, caller: Caller) -> None:
        refused = caller.post("views/does", key=None)

        assert refused.body.decode() == (
            '{"type": "https://django-idempotency.readthedocs.io/en/latest/problems.html'
            '#idempotency_key_missing", '
            '"title": "A key is missing", "status": 400, '
            '"detail": "Send an Idempotency-Key header: a fresh value for each operation, '
            'the same one on each retry.", "code": "idempotency_key_missing"}'
        )
        assert refused.headers["Content-Language"] == "en"
        assert "Accept-Language" in refused.headers["Vary"]
        assert "Retry-After" not in refused.headers

    def test_has_a_text_of_its_own_for_each_malformed_key(self, caller: Caller) -> None:
        details = {
            caller.post("does", key=key).document["detail"] for key in ("", "k" * 256, "é", '"a', "a,b")
        }

        assert len(details) == 5

    def test_in_chinese(self, rf: RequestFactory) -> None:
        answer = http.problem(OperationInProgress(timedelta(seconds=2)), rf.post("/", headers=CHINESE))

        assert answer["Content-Language"] == "zh-hans"
        assert answer["Retry-After"] == "2"
        assert '"title": "请求处理中，请稍候"' in answer.content.decode()

    @pytest.mark.parametrize("key", [None, "", "k" * 256])
    def test_is_of_one_language(self, caller: Caller, settings: Any, key: str | None) -> None:
        """Also where no middleware activates the client's language."""
        settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if "Locale" not in name]

        refused = caller.post("does", key=key, headers=CHINESE)

        texts = refused.document["title"], refused.document["detail"]
        assert [any("\u4e00" <= char <= "\u9fff" for char in text) for text in texts] == [True, True]

    def test_of_a_reused_key_is_of_one_language(self, caller: Caller, settings: Any) -> None:
        settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if "Locale" not in name]
        caller.post("does", {"a": 1})

        refused = caller.post("does", {"a": 2}, headers=CHINESE)

        texts = refused.document["title"], refused.document["detail"]
        assert [any("\u4e00" <= char <= "\u9fff" for char in text) for text in texts] == [True, True]

    def test_links_to_the_page_that_the_setting_names(self, rf: RequestFactory, settings: Any) -> None:
        settings.IDEMPOTENCY_PROBLEM_URL = "https://shop.example/errors/{code}"

        answer = http.problem(KeyMissing(), rf.post("/"), orderId="7")

        assert b'"type": "https://shop.example/errors/idempotency_key_missing"' in answer.content
        assert b'"orderId": "7"' in answer.content

    @pytest.mark.parametrize(
        ("milliseconds", "seconds"), [(0, "1"), (1, "1"), (1000, "1"), (1001, "2"), (90_000, "90")]
    )
    def test_tells_to_retry_after_whole_seconds(
        self, rf: RequestFactory, milliseconds: int, seconds: str
    ) -> None:
        answer = http.problem(StoreUnavailable(timedelta(milliseconds=milliseconds)), rf.post("/"))

        assert (answer.status_code, answer["Retry-After"]) == (503, seconds)


class TestRecord:
    def test_is_readable(self, caller: Caller) -> None:
        caller.post("does/7?a=1", key='"abc"')

        record = IdempotencyRecord.objects.get()

        assert (record.operation, record.scope, record.key, record.label) == (
            "POST lab/does/<int:number>",
            f"user:{User.objects.get().pk} /lab/does/7",
            "abc",
            "abc",
        )
        assert (record.state, record.status, bytes(record.body)) == (
            "COMPLETED",
            201,
            b'{"data":{},"number":7}',
        )
        assert retention(record) == timedelta(hours=24)

    def test_holds_nothing_of_the_request_but_a_digest(self, caller: Caller) -> None:
        """SEC-02"""
        caller.post("views/does", {"card": "4111-1111"})

        record = IdempotencyRecord.objects.values().get()

        assert len(bytes(record.pop("fingerprint"))) == 16
        assert "4111" not in repr(record)
