"""Messages that meet a rival, or a store that is away: sent again, later, and acknowledged."""

from datetime import UTC, datetime, timedelta

import pytest
from celery import Celery
from kombu import Queue

from idempotency.celery import WAITS
from idempotency.exceptions import OperationInProgress, OutcomeUnknown, StoreUnavailable
from tests.lab import effects
from tests.lab.deliveries import deliver, raising, state, waiting

pytestmark = pytest.mark.django_db(transaction=True)

BUSY = OperationInProgress(timedelta(seconds=1))


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
