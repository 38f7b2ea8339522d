"""Messages that were sent are deleted in the end, and none that is to be sent."""

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from idempotency import purging
from idempotency.dialects import Later
from tests.lab.operations import WITH_RIVALS, Lab, lab_db
from tests.lab.outbox import Outbox
from tests.lab.races import Background

pytestmark = lab_db


@pytest.fixture(autouse=True)
def in_each_database(database: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.IDEMPOTENCY_DATABASE = database
    monkeypatch.setattr(purging, "PAUSE", timedelta(0))


class TestPurge:
    def test_deletes_what_ended_long_ago_and_nothing_that_is_to_be_sent(
        self, box: Outbox, settings: Any
    ) -> None:
        settings.IDEMPOTENCY_OUTBOX_RETENTION = timedelta(days=7)
        box.publish(*range(6))
        messages = dict(zip(MESSAGES, box.messages.order_by("pk"), strict=True))
        week = Later(timedelta(days=-7, minutes=-1))
        box.messages.update(created_at=week)
        for name, (state, ended_at) in MESSAGES.items():
            due_at = week if state == "PENDING" else None
            columns = {"state": state, "due_at": due_at, "ended_at": ended_at and Later(ended_at)}
            box.messages.filter(pk=messages[name].pk).update(**columns)

        assert purging.purge() == 2

        left = set(box.messages.values_list("pk", flat=True))
        assert left == {messages[name].pk for name in ("young", "young drop", "pending", "dead")}

    def test_keeps_them_all_where_the_setting_says_so(self, box: Outbox, settings: Any) -> None:
        settings.IDEMPOTENCY_OUTBOX_RETENTION = None
        sent_long_ago(box, 2)

        assert purging.purge() == 0
        assert box.messages.count() == 2

    def test_shares_its_limit_with_the_records(self, box: Outbox, lab: Lab) -> None:
        lab.run("1")
        lab.run("2")
        lab.records.update(expires_at=Later(timedelta(hours=-1)))
        sent_long_ago(box, 3)

        assert purging.purge(batch_size=1, limit=4) == 4
        assert (lab.records.count(), box.messages.count()) == (0, 1)

    @WITH_RIVALS
    def test_waits_for_no_rival(self, box: Outbox) -> None:
        sent_long_ago(box, 2)
        with box.atomic():
            held = box.messages.select_for_update().order_by("pk")[0]
            assert Background(purging.purge).result() == 1

        assert box.messages.get() == held

    def test_is_told_by_the_command(self, box: Outbox) -> None:
        sent_long_ago(box, 1)
        dry, real = StringIO(), StringIO()
        call_command("idempotency_purge", "--dry-run", stdout=dry)
        call_command("idempotency_purge", stdout=real)

        assert dry.getvalue() == "0 expired records and 1 sent message to delete.\n"
        assert real.getvalue() == "0 expired records and 1 sent message deleted.\n"


MESSAGES = {
    "old": ("SENT", timedelta(days=-8)),
    "young": ("SENT", timedelta(days=-6)),
    "old drop": ("DROPPED", timedelta(days=-8)),
    "young drop": ("DROPPED", timedelta(days=-6)),
    "pending": ("PENDING", None),
    "dead": ("DEAD", None),
}
"""State and end of each, in their order."""


def sent_long_ago(box: Outbox, count: int) -> None:
    box.publish(*range(count))
    box.relay_all()
    box.messages.update(ended_at=Later(timedelta(days=-8)))
