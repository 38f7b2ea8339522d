"""The helpers that ship for other people's tests: each fails when it should."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from threading import Barrier
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
from django.db import connection
from django.http import HttpResponse, StreamingHttpResponse
from django.test import Client

from idempotency import engine
from idempotency.policies import Policy
from idempotency.testing import POINTS, Crash, Point, assert_once, assert_replays, crash_at, key, race
from idempotency.values import Operation, Outcome, Run
from tests.lab.callers import Caller
from tests.lab.effects import do, done, records
from tests.lab.models import Counter, Effect


def act(name: str = "done", key: str = "key-1") -> Run:
    def handle() -> tuple[str, Outcome]:
        do(name)
        return name, Outcome.of(name)

    return engine.run(Operation(name="lab.act", scope="", key=key), handle, policy=Policy())


class TestKey:
    def test_is_fresh_each_time(self) -> None:
        assert len({key() for _ in range(100)}) == 100


class TestRace:
    def test_starts_all_calls_together(self) -> None:
        meeting = Barrier(8, timeout=30)

        race(meeting.wait, times=8)  # breaks unless all are there

    def test_returns_results_and_exceptions_in_the_order_of_the_calls(self) -> None:
        error = ValueError("wrong")

        results = race(lambda: 1, Mock(side_effect=error), times=2)

        assert results == [1, error, 1, error]

    @pytest.mark.django_db(transaction=True)
    def test_gives_each_call_its_own_connection_and_closes_it(self) -> None:
        used: list[Any] = []

        def use() -> None:
            connection.ensure_connection()
            used.append(connection.connection)

        assert race(use, times=3) == [None, None, None]
        assert len(set(map(id, [*used, connection.connection]))) == 4
        assert all(is_closed(database_connection) for database_connection in used)


def is_closed(database_connection: Any) -> bool:
    try:
        database_connection.cursor()
    except Exception:  # noqa: BLE001  each driver has its own
        return True
    return False


@pytest.mark.django_db
class TestAssertOnce:
    def test_passes_for_exactly_one_new_row(self) -> None:
        Effect.objects.create(name="before")

        with assert_once(Effect, Counter.objects.filter(name="stock")):
            Effect.objects.create(name="now")
            Counter.objects.create(name="stock")
            Counter.objects.create(name="other")

    @pytest.mark.parametrize("times", [0, 2])
    def test_fails_for_any_other_number(self, times: int) -> None:
        with pytest.raises(AssertionError, match=rf"{times} new rows of lab\.Effect"), assert_once(Effect):
            Effect.objects.bulk_create([Effect(name="now")] * times)

    def test_is_not_fooled_by_a_row_that_goes(self) -> None:
        before = Effect.objects.create(name="before")

        with assert_once(Effect):
            before.delete()
            Effect.objects.create(name="now")

    def test_lets_an_error_of_the_block_through(self) -> None:
        with pytest.raises(LookupError), assert_once(Effect):
            raise LookupError


class TestAssertReplays:
    @pytest.mark.django_db
    @pytest.mark.parametrize("kind", ["json", "file", "binary", "no_content"])
    def test_passes_for_a_replay(self, kind: str, caller: Caller) -> None:
        first, again = [self.post(caller.client, kind) for _ in range(2)]

        assert_replays(again, first)

    def post(self, client: Client, kind: str) -> Any:
        return client.post(f"/lab/rest/guarded/{kind}", headers={"Idempotency-Key": "key-1"})

    @pytest.mark.parametrize(
        ("again", "trouble"),
        [
            ({"replayed": None}, "no replay"),
            ({"status": 200}, "status is 200, and was 201"),
            ({"content": b"other"}, "body is b'other', and was b'first'"),
            ({"location": "/orders/2"}, "location is '/orders/2', and was '/orders/1'"),
            ({"tenant": "b"}, "X-Tenant is 'b', and was 'a'|x-tenant is 'b', and was 'a'"),
        ],
    )
    def test_fails_for_anything_else(self, again: dict[str, Any], trouble: str) -> None:
        with pytest.raises(AssertionError, match=trouble):
            assert_replays(answer(**{"replayed": "true", **again}), answer(), headers=["X-Tenant"])

    def test_fails_where_the_first_is_a_replay_itself(self) -> None:
        with pytest.raises(AssertionError, match="the first"):
            assert_replays(answer(replayed="true"), answer(replayed="true"))

    def test_takes_streams_and_the_answers_of_other_clients(self) -> None:
        stream = StreamingHttpResponse(iter([b"fir", b"st"]), status=201, headers={"Location": "/orders/1"})
        headers = {"location": "/orders/1", "idempotent-replayed": "true"}
        headers["content-type"] = stream.headers["Content-Type"]

        assert_replays(httpx.Response(201, content=b"first", headers=headers), stream)


def answer(
    *,
    status: int = 201,
    content: bytes = b"first",
    location: str = "/orders/1",
    tenant: str = "a",
    replayed: str | None = None,
) -> HttpResponse:
    headers = {"Location": location, "X-Tenant": tenant, "Idempotent-Replayed": replayed}
    return HttpResponse(
        content, status=status, headers={name: value for name, value in headers.items() if value}
    )


@pytest.mark.django_db(transaction=True, databases="__all__")
class TestCrash:
    @pytest.fixture(autouse=True)
    def records_in_each_database(self, database: str, settings: Any) -> None:
        settings.IDEMPOTENCY_DATABASE = database

    @pytest.mark.parametrize("point", POINTS)
    def test_leaves_all_or_nothing_and_the_retry_ends_with_one_effect(self, point: Point) -> None:
        with pytest.raises(Crash), crash_at(point):
            act()
        left = int(point == "after_commit")

        assert (len(done()), records()) == (left, left)
        assert act().replayed == bool(left)
        assert (len(done()), records()) == (1, 1)


@pytest.mark.django_db(transaction=True)
class TestCrashAt:
    @pytest.mark.parametrize("point", POINTS)
    def test_crashes_exactly_there(self, point: Point) -> None:
        seen: list[str] = []

        def handle() -> tuple[None, Outcome]:
            seen.append("handler")
            return None, Outcome.of(None)

        def die() -> None:
            seen.append("crash")
            raise Crash

        operation = Operation(name="lab.act", scope="", key="key-1")
        with pytest.raises(Crash), crash_at(point, by=die):
            engine.run(operation, handle, policy=Policy())

        claimed = point in ("before_claim", "after_claim")
        assert seen == (["crash"] if claimed else ["handler", "crash"])

    def test_spares_a_replay_from_what_follows_the_claim(self) -> None:
        act()

        for point in ("after_claim", "in_handler", "before_commit", "after_commit"):
            with crash_at(point):
                assert act().replayed

    def test_reaches_the_calls_of_a_race(self) -> None:
        with crash_at("in_handler"):
            results = race(partial(act, key="a"), partial(act, key="b"))

        assert [type(result) for result in results] == [Crash, Crash]
        assert done() == []

    def test_refuses_an_unknown_point(self) -> None:
        with pytest.raises(ValueError, match="in_handler"), crash_at("in_handel"):  # type: ignore[arg-type]
            pass

    def test_leaves_the_engine_as_it_was(self) -> None:
        before = vars(engine).copy()

        with crash_at("in_handler"):
            pass

        assert vars(engine) == before

    def test_can_be_the_real_death(self) -> None:
        code = "from idempotency.testing import kill; kill()"

        assert (
            subprocess.run([sys.executable, "-c", f"import django; django.setup(); {code}"]).returncode == -9
        )


@pytest.mark.postgresql
class TestCrashing:
    def test_kills_the_worker_of_the_request_and_the_retry_answers(self, serve: Callable[..., Any]) -> None:
        server = serve(app="tests.idempotency.crashing")
        order = {"cart_id": "1", "currency": "CNY", "lines": [{"sku": "TEA-100", "quantity": 1}]}
        post = partial(httpx.post, f"{server.url}/api/orders", json=order, timeout=30)

        for number, point in enumerate(POINTS, start=1):
            headers = {"Authorization": "Token demo-alice", "Idempotency-Key": key()}
            with pytest.raises(httpx.TransportError):
                post(headers={**headers, "X-Crash-At": point})
            retried = post(headers=headers).json()

            assert retried["data"]["isDuplicate"] == (point == "after_commit")
            assert server.scalar("SELECT count(*) FROM idempotency_record") == number
