"""The work from time to time, as Celery tasks."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from idempotency import tasks
from idempotency.models import IdempotencyRecord
from idempotency.outbox import publish
from idempotency.relaying import Envelope
from tests.lab.operations import Lab

pytestmark = pytest.mark.django_db(transaction=True)

sent: list[Envelope] = []


def send(message: Envelope) -> None:
    sent.append(message)


def test_relay_sends_all_that_is_due(settings: Any) -> None:
    settings.IDEMPOTENCY_OUTBOX_ROUTES = {"lab.done": ["lab.work"]}
    settings.IDEMPOTENCY_OUTBOX_SENDER = f"{__name__}.send"
    settings.IDEMPOTENCY_OUTBOX_RELAY_ON_COMMIT = False
    sent.clear()
    with transaction.atomic():
        ids = {publish("lab.done", {"number": number}) for number in range(3)}

    for _ in range(2):
        tasks.relay.apply(throw=True)
    assert ({message.id for message in sent}, len(sent)) == (ids, 3)


def test_purge_deletes_what_has_expired() -> None:
    lab = Lab("default")
    lab.run("old")
    lab.run("new")
    lab.records.filter(key="old").update(expires_at=timezone.now() - timedelta(seconds=1))

    tasks.purge.apply(throw=True)
    assert [record.key for record in IdempotencyRecord.objects.all()] == ["new"]
