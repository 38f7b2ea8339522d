"""What is told about Celery's settings."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from celery import Celery
from celery import current_app as before
from django.core import checks

IDS = ("idempotency.W008", "idempotency.W009", "idempotency.W010")


@pytest.fixture
def app(settings: Any) -> Iterator[Celery]:
    """The process's app, for a while, and what messages are sent by."""
    settings.IDEMPOTENCY_OUTBOX_ROUTES = {"orders.paid": ["coupons.grant"]}
    settings.IDEMPOTENCY_OUTBOX_SENDER = "idempotency.celery.send"
    usual = before._get_current_object()
    app = Celery("tests", broker="redis://127.0.0.1:1/0", set_as_current=False, fixups=[])
    app.set_current()
    yield app
    usual.set_current()


def told() -> list[str]:
    messages = checks.run_checks(tags=["idempotency"], include_deployment_checks=True)
    return [message.id for message in messages if message.id in IDS]


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ({}, ["idempotency.W008"]),
        ({"broker_transport_options": {"visibility_timeout": 900}}, []),
        ({"broker_url": "amqp://127.0.0.1:1//"}, []),
        ({"broker_url": "memory://"}, ["idempotency.W009"]),
        ({"broker_url": "amqp://127.0.0.1:1//", "task_always_eager": True}, ["idempotency.W010"]),
    ],
)
def test_weakness_is_told(app: Celery, configuration: dict[str, Any], expected: list[str]) -> None:
    app.conf.update(configuration)
    assert told() == expected


def test_project_without_tasks_and_outbox_is_told_nothing(
    app: Celery, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.IDEMPOTENCY_OUTBOX_ROUTES = {}
    monkeypatch.delitem(sys.modules, "idempotency.celery", raising=False)
    assert told() == []
