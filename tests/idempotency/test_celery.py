"""Tasks that happen once, called directly, eagerly, and as a worker calls them."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from celery import Celery
from celery.exceptions import Ignore, Reject
from celery.exceptions import Retry as Retried

from idempotency.celery import IdempotentTask
from idempotency.exceptions import (
    KeyMissing,
    KeyReused,
    StoreUnavailable,
)
from idempotency.leased import Claim
from tests.lab import effects
from tests.lab.deliveries import deliver, raising, state, waiting
from tests.lab.effects import do
from tests.lab.operations import Lab, end_connection

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def grant(app: Celery) -> IdempotentTask:
    @app.task(base=IdempotentTask, shared=False, key="message_id", name="lab.grant")
    def grant(message_id: str, amount: Any = 1, *, note: str = "") -> Any:
        do(f"granted {message_id}")
        return {"amount": amount, "parts": ("a", "b")}

    return grant


class TestResult:
    def test_is_the_same_for_each_repeat(self, grant: IdempotentTask) -> None:
        results = [grant("A", Decimal("1.50")), grant("A", Decimal("1.50"))]
        results += [grant.apply(["A", Decimal("1.50")]).get(), deliver(grant, "A").retval]

        assert results == [{"amount": Decimal("1.50"), "parts": ["a", "b"]}] * 4
        assert effects.done() == ["granted A"]

    def test_belongs_to_the_key_however_the_call_is_written(self, grant: IdempotentTask) -> None:
        grant("A")
        grant(message_id="A")
        grant("A", 1, note="")
        grant("A", note="another")
        assert effects.done() == ["granted A"]

        grant("B")
        assert effects.done() == ["granted A", "granted B"]

    def test_belongs_to_one_task(self, app: Celery, grant: IdempotentTask) -> None:
        @app.task(base=IdempotentTask, shared=False, key="message_id", name="lab.other")
        def other(message_id: str) -> str:
            return "other"

        grant("A")
        assert other("A") == "other"

    def test_can_be_had_by_several_arguments_a_function_and_a_scope(self, app: Celery) -> None:
        @app.task(
            base=IdempotentTask,
            shared=False,
            key=lambda order, line, **rest: f"{order}-{line}",
            scope="tenant",
            fingerprint=["amount"],
        )
        def book(order: str, line: int, tenant: str, amount: int = 1, **rest: Any) -> None:
            do(f"booked {tenant}")

        for tenant in ("one", "one", "two"):
            book("A", 1, tenant, extra=1)
        assert effects.done() == ["booked one", "booked two"]
        with pytest.raises(KeyReused):
            book("A", 1, "one", amount=2)

    def test_of_a_bound_task(self, app: Celery) -> None:
        @app.task(base=IdempotentTask, shared=False, key="message_id", bind=True, name="lab.bound")
        def bound(self: IdempotentTask, message_id: str) -> str:
            do(self.name)
            return str(self.name)

        assert [bound("A"), bound("A"), deliver(bound, "A").retval] == ["lab.bound"] * 3
        assert effects.done() == ["lab.bound"]

    def test_of_a_class(self, app: Celery) -> None:
        class Granting(IdempotentTask):
            name = "lab.granting"
            key = "message_id"

            def run(self, message_id: str) -> str:
                do(message_id)
                return message_id

        task = app.register_task(Granting())
        assert [task("A"), task("A")] == ["A", "A"]
        assert effects.done() == ["A"]

    def test_of_a_leased_task(self, app: Celery) -> None:
        @app.task(
            base=IdempotentTask, shared=False, key="message_id", lease=timedelta(minutes=1), name="lab.leased"
        )
        def text(message_id: str, *, claim: Claim) -> str:
            claim.step("begin", lambda: do("begun"))
            return claim.call("send", lambda key: f"sent {len(key)}")

        assert [text("A"), text("A"), deliver(text, "A").retval] == ["sent 32"] * 3
        assert effects.done() == ["begun"]
        text.delay("B")  # the claim is nothing that a caller gives
        with pytest.raises(TypeError):
            text.delay("B", claim=None)

    def test_of_a_task_without_a_key_is_new_each_time(self, app: Celery) -> None:
        @app.task(base=IdempotentTask, shared=False, name="lab.plain")
        def plain(message_id: str) -> None:
            do("called")

        plain("A")
        plain("A")
        assert (effects.done(), effects.records()) == (["called", "called"], 0)


class TestRaised:
    @pytest.mark.parametrize(
        ("error", "told"),
        [(ValueError("no"), "FAILURE"), (Ignore(), "IGNORED"), (Reject("no"), "REJECTED")],
        ids=["error", "Ignore", "Reject"],
    )
    def test_leaves_nothing_and_the_key_free(self, app: Celery, error: Exception, told: str) -> None:
        task = raising(app, error, key="message_id")

        assert [state(deliver(task, "A")) for _ in range(2)] == [told, told]
        assert (effects.done(), effects.records()) == ([], 0)

    def test_is_retried_afresh(self, app: Celery) -> None:
        @app.task(
            base=IdempotentTask,
            shared=False,
            key="message_id",
            bind=True,
            name="lab.retrying",
            autoretry_for=(KeyError,),
            max_retries=3,
            retry_backoff=False,
            default_retry_delay=0,
        )
        def retrying(self: IdempotentTask, message_id: str) -> int:
            do(f"tried after {self.request.retries}")
            if self.request.retries == 0:
                raise KeyError
            if self.request.retries == 1:
                raise self.retry()
            return int(self.request.retries)

        assert retrying.apply(["A"]).get() == 2
        assert effects.done() == ["tried after 2"]

    def test_for_a_missing_key_is_the_messages_own_fault(self, grant: IdempotentTask, app: Celery) -> None:
        with pytest.raises(KeyMissing):
            grant("")
        assert state(deliver(grant, "")) == "FAILURE"
        assert (waiting(app), effects.done()) == ([], [])

    def test_by_a_replacement_says_what_to_do(self, app: Celery, grant: IdempotentTask) -> None:
        @app.task(base=IdempotentTask, shared=False, key="message_id", bind=True, name="lab.replaced")
        def replaced(self: IdempotentTask, message_id: str) -> None:
            do("replaced")
            self.replace(grant.s(message_id))

        with pytest.raises(RuntimeError, match="outbox"):
            replaced("A")
        assert (waiting(app), effects.done()) == ([], [])


@pytest.mark.postgresql
@pytest.mark.parametrize("replay_first", [True, False])
def test_database_that_was_away_is_found_again(
    grant: IdempotentTask, settings: Any, replay_first: bool
) -> None:
    settings.IDEMPOTENCY_REPLAY_FIRST = replay_first
    grant("A")
    end_connection(Lab("default"))

    with pytest.raises(StoreUnavailable):
        grant("B")
    grant("B")
    assert effects.done() == ["granted A", "granted B"]


def test_retry_is_told_as_such(app: Celery) -> None:
    @app.task(base=IdempotentTask, shared=False, key="message_id", bind=True, name="lab.once_more")
    def once_more(self: IdempotentTask, message_id: str) -> None:
        do("tried")
        raise self.retry(countdown=0)

    traced = deliver(once_more, "A")

    assert isinstance(traced.info.retval, Retried)
    assert [message.headers["retries"] for message in waiting(app)] == [2]
    assert effects.done() == []
