"""A second click within a moment is refused, and costs no work; the database decides all the same."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event
from types import ModuleType
from typing import Any

import pytest
from django.http import HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from idempotency import guards
from idempotency.decorators import idempotent_view
from idempotency.exceptions import DuplicateSubmission
from idempotency.mixins import IdempotentMixin
from idempotency.policies import Policy
from idempotency.values import Operation
from tests.lab import effects
from tests.lab.caches import Server
from tests.lab.callers import Caller
from tests.lab.rest import Does
from tests.lab.views import bare_does

WINDOW = timedelta(seconds=30)
POLICY = Policy(short_window=WINDOW, required=False)
REFUSED = (409, "duplicate_submission", "30")

pytestmark = pytest.mark.usefixtures("replay_cache")


class Submits(IdempotentMixin, Does):
    idempotency_policy = POLICY


urls = ModuleType("urls")
urls.urlpatterns = [
    path("lab/submits", Submits.as_view()),
    path("lab/submits/<int:number>", Submits.as_view()),
    path("lab/views/submits", csrf_exempt(idempotent_view(POLICY)(bare_does))),
]

both = pytest.mark.parametrize("to", ["submits", "views/submits"])


@pytest.fixture(autouse=True)
def addresses(settings: Any) -> None:
    settings.ROOT_URLCONF = urls


def refusal(answer: Any) -> tuple[int, str, str]:
    return answer.status, answer.document["code"], answer.headers["Retry-After"]


@pytest.mark.django_db(transaction=True)
class TestWindow:
    @both
    def test_refuses_a_second_click_without_a_key(self, caller: Caller, to: str) -> None:
        assert caller.post(to, key=None).status == 201
        assert refusal(caller.post(to, key=None)) == REFUSED
        assert effects.done() == ["done"]

    @both
    def test_refuses_a_second_click_with_a_fresh_key(self, caller: Caller, to: str) -> None:
        assert caller.post(to, key="first").status == 201
        assert refusal(caller.post(to, key="second")) == REFUSED
        assert refusal(caller.post(to, key=None)) == REFUSED
        assert (effects.done(), effects.records()) == (["done"], 1)

    @both
    def test_replays_to_a_repeat_with_the_same_key(self, caller: Caller, to: str) -> None:
        answers = [caller.post(to, key="first") for _ in range(3)]

        assert [answer.summary for answer in answers] == [(201, False), (201, True), (201, True)]

    @both
    def test_is_of_one_caller_and_one_content(self, caller: Caller, stranger: Caller, to: str) -> None:
        answers = [
            caller.post(to, {"sku": "A"}, key=None),
            caller.post(to, {"sku": "B"}, key=None),
            stranger.post(to, {"sku": "A"}, key=None),
            caller.post(f"{to}?page=2", {"sku": "A"}, key=None),
        ]

        assert [answer.status for answer in answers] == [201] * 4

    def test_is_of_one_address(self, caller: Caller) -> None:
        answers = [caller.post(to, key=None).status for to in ("submits/1", "submits/2")]

        assert answers == [201, 201]

    @both
    @pytest.mark.parametrize("then", ["400", "500", "!500"])
    @pytest.mark.parametrize("key", [None, "first"])
    def test_is_over_when_the_request_fails(
        self, caller: Caller, to: str, then: str, key: str | None
    ) -> None:
        failed = caller.post(f"{to}?then={then}", key=key)
        again = caller.post(f"{to}?then={then}", key=None)

        assert failed.status == again.status
        assert failed.status != 409

    def test_tells_the_receivers_of_refused(self, caller: Caller, heard: list[tuple[Any, ...]]) -> None:
        caller.post("submits", key=None)
        caller.post("submits", key=None)

        assert heard == [("refused", None, "duplicate_submission")]

    @both
    def test_is_open_without_redis(self, caller: Caller, redis: Server, to: str) -> None:
        with redis.away():
            answers = [caller.post(to, key=None).status for _ in range(3)]

        assert answers == [201] * 3

    @both
    def test_is_open_without_a_cache(self, caller: Caller, settings: Any, to: str) -> None:
        settings.IDEMPOTENCY_CACHE = None

        assert [caller.post(to, key=None).status for _ in range(2)] == [201] * 2

    def test_has_an_end_from_its_beginning(self, caller: Caller, redis: Server) -> None:
        caller.post("submits", key=None)
        (name,) = redis.names()

        assert 0 < redis.left(name.decode()) <= WINDOW.total_seconds()


class TestGuard:
    """The function itself."""

    OPERATION = Operation(name="lab.do", scope="lab", key="", fingerprint=b"1" * 16)

    def test_lets_one_of_many_pass(self) -> None:
        begun, goes_on = Event(), Event()

        def slow() -> HttpResponse:
            begun.set()
            assert goes_on.wait(10)
            return HttpResponse(status=201)

        with ThreadPoolExecutor() as pool:
            first = pool.submit(guards.once_within, WINDOW, self.OPERATION, slow)
            assert begun.wait(10)
            rivals = [pool.submit(guards.once_within, WINDOW, self.OPERATION, slow) for _ in range(20)]
            errors = [rival.exception() for rival in rivals]
            goes_on.set()

        assert first.result().status_code == 201
        assert {type(error) for error in errors} == {DuplicateSubmission}

    def test_never_ends_a_window_that_may_be_anothers(
        self, redis: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = guards.time.monotonic

        def late() -> HttpResponse:
            monkeypatch.setattr(guards.time, "monotonic", lambda: now() + WINDOW.total_seconds())
            return HttpResponse(status=500)

        guards.once_within(WINDOW, self.OPERATION, late)

        assert len(redis.names()) == 1

    def test_cannot_tell_two_requests_apart_without_a_fingerprint(self, redis: Server) -> None:
        operation = Operation(name="lab.do", scope="lab", key="")
        for _ in range(2):
            guards.once_within(WINDOW, operation, lambda: HttpResponse(status=201))

        assert redis.names() == []
