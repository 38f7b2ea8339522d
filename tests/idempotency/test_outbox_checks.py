"""The checks find what would keep messages from being heard."""

import sys
from typing import Any

import pytest
from celery import shared_task
from django.core import checks

from idempotency import conf
from idempotency.checks import outbox

pytestmark = pytest.mark.django_db  # Celery checks the models when it imports the tasks

CELERY = conf.DEFAULTS["IDEMPOTENCY_OUTBOX_SENDER"]


@shared_task(name="lab.known")
def known() -> None:
    """A task that hears of things."""


@pytest.fixture(autouse=True)
def routes(settings: Any) -> None:
    settings.IDEMPOTENCY_OUTBOX_ROUTES = {"lab.happened": ["lab.known"], "lab.ignored": []}
    settings.IDEMPOTENCY_OUTBOX_SENDER = CELERY


class TestSender:
    def test_is_celery_by_default(self) -> None:
        assert outbox.check_sender() + outbox.check_tasks() == []

    def test_is_missed(self, settings: Any) -> None:
        settings.IDEMPOTENCY_OUTBOX_SENDER = "tests.lab.outbox.nobody"

        (message,) = outbox.check_sender()

        assert message.id == "idempotency.E007"
        assert "tests.lab.outbox.nobody" in message.msg
        assert message.hint == "Name a function in IDEMPOTENCY_OUTBOX_SENDER."

    def test_is_not_missed_where_nothing_is_published(self, settings: Any) -> None:
        settings.IDEMPOTENCY_OUTBOX_ROUTES = {}
        settings.IDEMPOTENCY_OUTBOX_SENDER = "tests.lab.outbox.nobody"

        assert outbox.check_sender() + outbox.check_tasks() == []

    def test_needs_celery_where_it_is_celerys(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "celery", None)
        monkeypatch.delitem(sys.modules, "idempotency.celery", raising=False)

        (message,) = outbox.check_sender()

        assert message.id == "idempotency.E007"
        assert "pip install django-idempotency[celery]" in message.hint
        assert outbox.check_tasks() == []


class TestTasks:
    def test_are_missed_by_their_names(self, settings: Any) -> None:
        settings.IDEMPOTENCY_OUTBOX_ROUTES = {"lab.happened": ["lab.known", "lab.knwon"]}

        (message,) = outbox.check_tasks()

        assert message.id == "idempotency.E008"
        assert (
            message.msg == "The topic 'lab.happened' goes to the task 'lab.knwon', which is not registered."
        )

    def test_are_another_senders_own_affair(self, settings: Any) -> None:
        settings.IDEMPOTENCY_OUTBOX_ROUTES = {"lab.happened": ["queue-1"]}
        settings.IDEMPOTENCY_OUTBOX_SENDER = "tests.lab.outbox.send"

        assert outbox.check_sender() + outbox.check_tasks() == []

    @pytest.mark.parametrize("routes", [["lab.happened"], {"lab.happened": "lab.unknown"}])
    def test_of_malformed_routes_are_told_of_once(self, settings: Any, routes: Any) -> None:
        settings.IDEMPOTENCY_OUTBOX_ROUTES = routes

        messages = checks.run_checks(tags=["idempotency"])

        assert [message.id for message in messages] == ["idempotency.E001"]
