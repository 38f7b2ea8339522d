"""The options of a task: those that can only do harm are refused when the app is put together."""

from datetime import timedelta
from typing import Any

import pytest
from celery import Celery

from idempotency.celery import IdempotentTask
from idempotency.models import IdempotencyRecord
from tests.lab import effects
from tests.lab.effects import do

pytestmark = pytest.mark.django_db(transaction=True)


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "told"),
        [
            ({"key": "order_id"}, "no argument order_id"),
            ({"key": "message_id", "scope": "tenant"}, "no argument tenant"),
            ({"key": "message_id", "fingerprint": ["amount"]}, "no argument amount"),
            ({"key": "message_id", "lease": timedelta(seconds=1)}, "takes its claim"),
            ({"lease": timedelta(seconds=1)}, "no key"),
            ({"key": "message_id", "acks_late": False}, "acks_late"),
            ({"key": "message_id", "reject_on_worker_lost": False}, "reject_on_worker_lost"),
            ({"key": "message_id", "retention": 60}, "timedelta"),
        ],
    )
    def test_that_cannot_work_are_refused(self, app: Celery, options: dict[str, Any], told: str) -> None:
        @app.task(base=IdempotentTask, shared=False, name="lab.mistaken", **options)
        def mistaken(message_id: str) -> None:
            do("never")

        with pytest.raises(TypeError, match=told):
            app.finalize()

    def test_can_be_shared_by_a_base(self, app: Celery) -> None:
        class Forever(IdempotentTask):
            abstract = True
            key = "message_id"
            retention = None

        @app.task(base=Forever, shared=False, name="lab.forever")
        def forever(message_id: str) -> None:
            do("done")

        forever("A")
        forever("A")
        assert effects.done() == ["done"]
        assert IdempotencyRecord.objects.get().expires_at is None
