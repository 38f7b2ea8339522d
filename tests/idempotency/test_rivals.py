"""A rival that comes while the first is in its handler, on each database."""

import time
from datetime import timedelta
from functools import partial
from threading import Event
from typing import Any

import pytest
from django.utils import timezone

from idempotency.exceptions import OperationInProgress
from tests.lab.operations import WITH_RIVALS, Lab, lab_db
from tests.lab.races import PATIENCE, Background

pytestmark = lab_db

WAIT = {"wait": timedelta(seconds=PATIENCE)}
AT_ONCE = timedelta(seconds=20)
"""Less than the 50 seconds that MariaDB waits for a lock when nobody bounds it."""


def expire(lab: Lab) -> None:
    lab.records.update(expires_at=timezone.now() - timedelta(seconds=1))


class TestRival:
    """A rival comes while the first is in its handler."""

    def hold(self, lab: Lab, *, then: Event, keep: bool = True, **options: Any) -> Background:
        inside = Event()

        def pause() -> None:
            inside.set()
            assert then.wait(PATIENCE)

        handler = lab.handler("first", then=pause, keep=keep)
        background = Background(partial(lab.run, handler=handler, **options))
        assert inside.wait(PATIENCE)
        return background

    @pytest.fixture
    def lab(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
        """SQLite's rivals wait for the writer: not for long here."""
        if lab.connection.vendor == "sqlite":
            monkeypatch.setitem(lab.connection.settings_dict["OPTIONS"], "timeout", 0.05)
            lab.connection.close()
        return lab

    @pytest.mark.parametrize("expired", [False, True], ids=["fresh", "expired"])
    def test_is_told_that_it_runs(self, lab: Lab, expired: bool) -> None:
        """On SQLite: when the wait at BEGIN is over."""
        if expired:
            lab.run(handler=lab.handler("expired"))
            expire(lab)
        end = Event()
        first = self.hold(lab, then=end)

        asked = time.monotonic()
        with pytest.raises(OperationInProgress) as refused:
            lab.run()
        took = timedelta(seconds=time.monotonic() - asked)
        end.set()

        assert took < AT_ONCE
        assert refused.value.retry_after == timedelta(seconds=1)
        assert (first.result().value, lab.run().replayed) == ("first", True)
        assert lab.done == ["expired"] * expired + ["first"]

    def test_with_another_body_is_told_that_it_runs(self, lab: Lab) -> None:
        end = Event()
        first = self.hold(lab, then=end)

        with pytest.raises(OperationInProgress):
            lab.run(fingerprint=b"2" * 16)
        end.set()

        assert first.result().value == "first"

    @pytest.mark.parametrize("keep", [True, False])
    @WITH_RIVALS
    def test_that_waits_gets_the_outcome_or_runs(self, lab: Lab, keep: bool) -> None:
        end = Event()
        first = self.hold(lab, then=end, keep=keep)
        rival = Background(partial(lab.run, policy=WAIT))
        wait_until_blocked(lab)

        end.set()

        assert first.result().value == "first"
        assert rival.result().replayed == keep
        assert lab.done == (["first"] if keep else ["done"])

    def test_that_waits_too_long_is_told_that_it_runs(self, lab: Lab) -> None:
        end = Event()
        first = self.hold(lab, then=end)

        with pytest.raises(OperationInProgress):
            lab.run(policy={"wait": timedelta(milliseconds=50)})
        end.set()

        assert first.result().value == "first"
        assert lab.run().replayed

    @WITH_RIVALS
    def test_that_waited_in_vain_leaves_the_transaction_usable(self, lab: Lab) -> None:
        end = Event()
        first = self.hold(lab, then=end)

        with lab.atomic():
            with pytest.raises(OperationInProgress):
                lab.run(policy={"wait": timedelta(milliseconds=50)})
            lab.run("another", lab.handler("another"))
        end.set()

        assert first.result().value == "first"
        assert sorted(lab.done) == ["another", "first"]


def wait_until_blocked(lab: Lab) -> None:
    """Return once a statement waits for a lock."""
    sql = {
        "postgresql": "SELECT count(*) FROM pg_locks WHERE NOT granted",
        "mysql": "SELECT variable_value + 0 FROM information_schema.global_status "
        "WHERE variable_name = 'INNODB_ROW_LOCK_CURRENT_WAITS'",
    }[lab.connection.vendor]
    deadline = timezone.now() + timedelta(seconds=PATIENCE)
    while timezone.now() < deadline:
        with lab.connection.cursor() as cursor:
            cursor.execute(sql)
            if cursor.fetchone()[0]:
                return
    raise TimeoutError("nobody waits")
