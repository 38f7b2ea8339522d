"""Messages that meet a rival, or a store that is away: sent again, later, and acknowledged."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from celery import Celery
from kombu import Queue

from idempotency import sending
from idempotency.celery import WAITS, IdempotentTask
from idempotency.exceptions import OperationInProgress, OutcomeUnknown, StoreUnavailable
from tests.lab import effects
from tests.lab.deliveries import deliver, raising, state, waiting

pytestmark = pytest.mark.django_db(transaction=True)

BUSY = OperationInProgress(timedelta(seconds=1))


class TestRetry:
    """On a broker that delivers what waits longer than ten seconds once more."""

    @pytest.fixture
    def app(self, app: Celery) -> Celery:
        app.conf.broker_transport_options = {"visibility_timeout": 10}
        return app

    def wait(self, app: Celery, *, task: dict[str, Any] | None = None, **options: Any) -> int:
        @app.task(
            base=IdempotentTask, shared=False, key="message_id", bind=True, name="lab.again", **task or {}
        )
        def again(self: IdempotentTask, message_id: str) -> None:
            raise self.retry(**options)

        traced = deliver(again, "A")
        (again,) = waiting(app)
        assert (state(traced), again.headers["retries"]) == ("RETRY", 2)
        return round((datetime.fromisoformat(again.headers["eta"]) - datetime.now(UTC)).total_seconds())

    def test_comes_before_the_broker_sends_a_copy(self, app: Celery) -> None:
        assert self.wait(app, countdown=3600) == 5

    def test_at_a_time_that_is_given_comes_before_it_too(self, app: Celery) -> None:
        assert self.wait(app, eta=datetime.now(UTC) + timedelta(hours=1)) == 5

    def test_by_the_tasks_own_delay_comes_before_it_too(self, app: Celery) -> None:
        assert self.wait(app, task={"default_retry_delay": 60}) == 5

    def test_comes_when_it_is_wanted_where_that_is_sooner(self, app: Celery) -> None:
        assert self.wait(app, countdown=3) == 3

    def test_at_a_near_time_comes_then(self, app: Celery) -> None:
        assert self.wait(app, eta=datetime.now(UTC) + timedelta(seconds=4)) == 4

    def test_by_an_error_comes_before_the_copy_too(self, app: Celery) -> None:
        options = {"autoretry_for": (ValueError,), "retry_backoff": 3600, "retry_jitter": False}
        deliver(raising(app, ValueError("no"), key="message_id", max_retries=None, **options), "A")

        (again,) = waiting(app)
        assert datetime.fromisoformat(again.headers["eta"]) < datetime.now(UTC) + timedelta(seconds=6)


class TestStepAside:
    def wait(self, app: Celery, error: Exception, waits: int) -> int:
        """Seconds that a message is sent into the future, as it was meant a moment ago."""
        name = f"lab.raising_{type(error).__name__}"
        task = app.tasks.get(name) or raising(app, error, name=name)
        deliver(task, "A", headers={WAITS: waits})
        (again,) = waiting(app)
        return round((datetime.fromisoformat(again.headers["eta"]) - datetime.now(UTC)).total_seconds())

    @pytest.mark.parametrize("error", [BUSY, StoreUnavailable(timedelta(seconds=1)), OutcomeUnknown()])
    def test_sends_the_same_message_again(self, app: Celery, error: Exception) -> None:
        traced = deliver(raising(app, error, key="message_id"), "A")

        (again,) = waiting(app)
        assert state(traced) == "IGNORED"
        assert again.payload[0] == ["A"]
        headers = {name: again.headers[name] for name in ("id", "task", "retries", "expires", WAITS)}
        assert headers == {
            "id": "task-1",
            "task": "lab.raising",
            "retries": 1,
            "expires": "2099-01-01T00:00:00+00:00",
            WAITS: 1,
        }
        assert again.headers["eta"]
        properties = {name: again.properties[name] for name in ("correlation_id", "reply_to", "priority")}
        assert properties == {"correlation_id": "task-1", "reply_to": "replies", "priority": 3}
        assert effects.done() == []

    def test_keeps_the_senders_headers_and_counts_its_own(self, app: Celery) -> None:
        task = raising(app, BUSY)
        deliver(task, "A", headers={"tenant": "one", WAITS: 4})

        (again,) = waiting(app)
        assert (again.headers["tenant"], again.headers[WAITS]) == ("one", 5)

    def test_waits_longer_each_time_up_to_a_bound(self, app: Celery) -> None:
        assert [self.wait(app, BUSY, waits) for waits in (0, 1, 2, 100)] == [1, 2, 4, 30]

    def test_waits_longer_for_another_system(self, app: Celery) -> None:
        assert [self.wait(app, OutcomeUnknown(), waits) for waits in (0, 1, 2, 100)] == [10, 20, 40, 300]

    def test_waits_shorter_than_redis_keeps_a_message_from_others(self, app: Celery) -> None:
        app.conf.broker_transport_options = {"visibility_timeout": 10}
        assert self.wait(app, BUSY, 100) == 5

    def test_waits_shorter_than_redis_keeps_a_message_where_nothing_says_how_long(self, app: Celery) -> None:
        on_redis = Celery("tests", broker="redis://nowhere", set_as_current=False)
        on_amqp = Celery("tests", broker="amqp://nowhere", set_as_current=False)

        assert sending.longest_wait(on_redis) == timedelta(minutes=30)
        assert sending.longest_wait(on_amqp) == timedelta.max

    def test_is_no_retry_of_the_task(self, app: Celery) -> None:
        deliver(raising(app, BUSY, key="message_id", autoretry_for=(Exception,), max_retries=5), "A")

        (again,) = waiting(app)
        assert again.headers["retries"] == 1

    def test_leaves_the_message_to_the_broker_where_it_cannot_be_sent(
        self, app: Celery, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        task = raising(app, BUSY)
        app.conf.task_queues = [Queue("another")]
        app.conf.task_create_missing_queues = False
        traced = deliver(task, "A")

        assert state(traced) == "REJECTED"
        assert traced.info.retval.requeue

    def test_is_left_to_the_caller_of_a_direct_or_eager_call(self, app: Celery) -> None:
        task = raising(app, BUSY)
        for call in (task, lambda message_id: task.apply([message_id]).get()):
            with pytest.raises(OperationInProgress):
                call("A")
        assert waiting(app) == []
