"""Plain Django views, function and class, sync and async: ``@idempotent_view``."""

import asyncio
import inspect
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
import pytest
from asgiref.sync import async_to_sync, iscoroutinefunction
from django.test import AsyncClient, Client
from django.urls import resolve

from idempotency.decorators import idempotent_view
from tests.lab import answers, effects, views
from tests.lab.callers import Caller
from tests.lab.races import race
from tests.processes import WebServer

TWICE = [(201, False), (201, True)]


@pytest.mark.django_db
class TestFunctionView:
    def test_happens_once(self, caller: Caller) -> None:
        answers = [caller.post("views/does") for _ in range(2)]

        assert [each.summary for each in answers] == TWICE
        assert answers[0].body == answers[1].body
        assert effects.done() == ["done"]

    def test_keeps_its_face(self) -> None:
        assert (views.does.__name__, views.does.__doc__) == (
            "bare_does",
            "Do something, and answer as ``?then=`` says.",
        )
        assert list(inspect.signature(views.does).parameters) == ["request"]

    def test_keeps_what_other_decorators_say(self) -> None:
        def view(request: Any) -> None:
            pass

        view.csrf_exempt = True  # type: ignore[attr-defined]
        view.login_required = False  # type: ignore[attr-defined]

        assert vars(idempotent_view()(view))["csrf_exempt"] is True
        assert vars(idempotent_view()(view))["login_required"] is False

    def test_is_checked_for_csrf_where_it_is_not_exempt(self, caller: Caller) -> None:
        caller.client.handler.enforce_csrf_checks = True

        assert caller.post("views/does").status == 201
        assert caller.post("views/uploads").status == 403
        assert effects.done() == ["done"]

    def test_leaves_other_methods_alone(self, caller: Caller) -> None:
        assert [caller.send("GET", "views/does", key=key).summary for key in ("a", "a", None)] == [
            (201, False)
        ] * 3
        assert caller.send("PUT", "views/does").status == 405

    def test_follows_its_hooks(self, caller: Caller) -> None:
        first, again, other, none = (
            caller.post("views/hooked", b"1", headers={"X-Tenant": tenant, **headers})
            for tenant, headers in [
                ("a", {"X-Message-Id": "m"}),
                ("a", {"X-Message-Id": "m"}),
                ("b", {"X-Message-Id": "m"}),
                ("a", {}),
            ]
        )

        assert [each.summary for each in (first, again, other, none)] == [
            (201, False),
            (208, True),
            (201, False),
            (201, False),
        ]


@pytest.mark.django_db
class TestClassView:
    @pytest.mark.parametrize("path", ["views/class", "views/async-class"])
    def test_happens_once(self, caller: Caller, path: str) -> None:
        answers = [caller.post(path) for _ in range(2)]

        assert [each.summary for each in answers] == TWICE
        assert len(effects.done()) == 1

    @pytest.mark.parametrize("path", ["views/class", "views/async-class"])
    def test_leaves_other_methods_alone(self, caller: Caller, path: str) -> None:
        assert [caller.send("GET", path, key=None).body for _ in range(2)] == [b"plain"] * 2
        assert caller.send("PUT", path).status == 405
        assert effects.records() == 0

    def test_stays_a_class(self) -> None:
        assert inspect.isclass(views.ClassView)
        assert resolve("/lab/views/class").func.view_class is views.ClassView
        assert views.ClassView.__doc__ == "A class-based view."

    def test_is_async_where_it_was(self) -> None:
        kinds = [iscoroutinefunction(view.as_view()) for view in (views.ClassView, views.AsyncClassView)]

        assert kinds == [False, True]


def post(client: Any, content: Any, *, key: str = "key-1") -> Any:
    return client.post(
        "/lab/views/async",
        json.dumps(content),
        content_type="application/json",
        headers={"Idempotency-Key": key},
    )


@pytest.mark.django_db(transaction=True)
class TestAsyncView:
    def gather(self, *contents: Any, keys: Callable[[int], str] = lambda number: "key-1") -> list[Any]:
        async def send() -> list[Any]:
            client = AsyncClient(raise_request_exception=False)
            return await asyncio.gather(
                *(post(client, content, key=keys(number)) for number, content in enumerate(contents))
            )

        return async_to_sync(send)()

    def test_happens_once(self) -> None:
        answers = [*self.gather({}), *self.gather({})]

        assert [(each.status_code, each.json()) for each in answers] == [(201, {"count": 1})] * 2
        assert answers[1].headers["Idempotent-Replayed"] == "true"
        assert effects.done() == ["async"]

    def test_happens_once_under_wsgi(self) -> None:
        answers = [post(Client(), {}) for _ in range(2)]

        assert [each.status_code for each in answers] == [201, 201]
        assert effects.done() == ["async"]

    @pytest.mark.parametrize(("content", "status"), [({"status": 400}, 400), ({"raise": 1}, 500)])
    def test_that_is_not_kept_happens_not_at_all(self, content: Any, status: int) -> None:
        assert self.gather(content)[0].status_code == status
        assert (effects.done(), effects.records()) == ([], 0)

    def test_asked_at_the_same_time_happens_once(self) -> None:
        answers = self.gather(*[{}] * 5)

        assert {each.status_code for each in answers} <= {201, 409}
        assert effects.done() == ["async"]

    def test_is_still_async(self) -> None:
        assert iscoroutinefunction(views.async_does)
        assert views.async_does.csrf_exempt is True


@pytest.mark.postgresql
class TestUvicorn:
    """A real asynchronous server."""

    @pytest.fixture
    def server(self, serve: Callable[..., WebServer]) -> WebServer:
        return serve(app="config.asgi", settings="tests.settings", workers=1)

    def test_runs_an_operation_once(self, server: WebServer) -> None:
        def send(content: Any, key: str) -> httpx.Response:
            headers = {"Idempotency-Key": key}
            return httpx.post(f"{server.url}/lab/views/async", json=content, headers=headers, timeout=60)

        rivals = race([partial(send, {}, "one key")] * 20)
        others = race([partial(send, {}, str(number)) for number in range(20)])
        streams = [send({"answer": "large_async_stream"}, "stream") for _ in range(2)]
        broken = [send({"raise": 1}, "broken"), send({}, "broken")]

        assert {each.status_code for each in rivals} <= {201, 409}
        assert len({each.content for each in rivals if each.status_code == 201}) == 1
        assert [each.headers["Retry-After"] for each in rivals if each.status_code == 409] == ["1"] * sum(
            each.status_code == 409 for each in rivals
        )
        assert [each.status_code for each in others] == [201] * 20
        assert [len(each.content) for each in streams] == [answers.LARGE, 0]
        assert streams[1].headers["Idempotent-Replay-Body"] == "omitted"
        assert [each.status_code for each in broken] == [500, 201]
        assert server.scalar("SELECT count(*) FROM lab_effect") == 1 + 20 + 1 + 1
