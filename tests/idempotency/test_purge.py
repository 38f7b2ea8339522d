"""The purge deletes what has expired, and is in nobody's way."""

import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from io import StringIO
from threading import Event
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connections, transaction
from django.db.models.signals import pre_delete
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from idempotency import engine, purging
from idempotency.exceptions import OperationInProgress
from idempotency.models import IdempotencyRecord, RecordQuerySet, State
from idempotency.policies import Policy
from idempotency.testing import race
from idempotency.values import Operation, Outcome, Run
from tests.campaigns import rounds
from tests.lab.races import Background

pytestmark = pytest.mark.django_db(transaction=True, databases="__all__")

WITH_ROW_LOCKS = [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("postgresql", "mariadb")]
SQLITE = [pytest.param("sqlite", marks=pytest.mark.sqlite)]
PATIENCE = 30
PAST = timedelta(hours=-1)


@pytest.fixture(autouse=True)
def records_in_each_database(database: str, settings: Any) -> None:
    settings.IDEMPOTENCY_DATABASE = database


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purging, "PAUSE", timedelta(0))


def claim(key: str, *, retention: timedelta | None = timedelta(hours=1)) -> Run:
    operation = Operation(name="lab.purged", scope="", key=key)
    return engine.run(
        operation, lambda: (None, Outcome.of(key)), policy=Policy(retention=retention, wait=timedelta(0))
    )


def claim_at_last(key: str) -> Run:
    """Claim an expired key. Where a row lock is the claim, its deletion looks like a rival for a moment."""
    for _ in range(9):
        try:
            return claim(key)
        except OperationInProgress:
            if connections[engine.database(Policy())].vendor != "mysql":
                raise
            time.sleep(0.1)
    return claim(key)


def expire(*keys: str, by: timedelta = PAST) -> None:
    for key in keys:
        claim(key)
    records().filter(key__in=keys).update(expires_at=timezone.now() + by)


def records() -> RecordQuerySet:
    return IdempotencyRecord.objects.using(engine.database(Policy()))


def keys() -> set[str]:
    return set(records().values_list("key", flat=True))


class TestPurge:
    def test_deletes_what_has_expired_and_nothing_else(self) -> None:
        expire("expired-1", "expired-2")
        claim("live")
        claim("for ever", retention=None)

        assert purging.purge() == 2
        assert keys() == {"live", "for ever"}
        assert purging.purge() == 0

    def test_never_deletes_what_is_unfinished(self) -> None:
        expire("unfinished")
        records().update(state=State.IN_PROGRESS)

        assert purging.purge() == 0
        assert keys() == {"unfinished"}

    def test_goes_by_the_clock_of_the_database(self, monkeypatch: pytest.MonkeyPatch) -> None:
        expire("live", by=timedelta(minutes=5))
        later = timezone.now() + timedelta(minutes=10)
        monkeypatch.setattr(timezone, "now", lambda: later)

        assert purging.purge() == 0
        assert keys() == {"live"}

    def test_deletes_in_batches_the_oldest_first(self, no_pauses: None) -> None:
        for age in range(5):
            expire(f"{age} h", by=timedelta(hours=-1 - age))

        assert list(purging.batches(batch_size=2)) == [2, 2, 1]
        assert keys() == set()

    def test_stops_at_the_limit(self, no_pauses: None) -> None:
        for age in range(5):
            expire(f"{age} h", by=timedelta(hours=-1 - age))

        assert list(purging.batches(batch_size=2, limit=3)) == [2, 1]
        assert keys() == {"0 h", "1 h"}

    @pytest.mark.parametrize("options", [{"batch_size": 0}, {"batch_size": 10_001}, {"limit": -1}])
    def test_refuses_what_makes_no_sense(self, options: dict[str, int]) -> None:
        with pytest.raises(ValueError, match=next(iter(options))):
            purging.purge(**options)

    def test_loads_no_body_even_where_somebody_listens_to_deletions(self, database: str) -> None:
        expire("expired")
        listener: Callable[..., None] = lambda **kwargs: None  # noqa: E731
        pre_delete.connect(listener)
        try:
            with CaptureQueriesContext(connections[database]) as queries:
                assert purging.purge() == 1
        finally:
            pre_delete.disconnect(listener)

        assert not [query["sql"] for query in queries if "body" in query["sql"]]


class TestPurgeAmongClaims:
    def test_leaves_a_record_that_is_taken_over_between_reading_and_deleting(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        expire("expired", "taken over")
        read = purging._read

        def read_then_lose(*args: Any) -> Any:
            ids = read(*args)
            race(partial(claim, "taken over"))
            return ids

        monkeypatch.setattr(purging, "_read", read_then_lose)

        assert purging.purge() == 1
        assert keys() == {"taken over"}
        assert claim("taken over").replayed

    @pytest.mark.parametrize("vendor", WITH_ROW_LOCKS, indirect=True)
    def test_waits_for_no_rival(self, database: str) -> None:
        expire("expired", "held")
        with transaction.atomic(database):
            claim("held")
            assert Background(purging.purge).result() == 1

        assert keys() == {"held"}
        assert claim("held").replayed

    @pytest.mark.parametrize("vendor", WITH_ROW_LOCKS, indirect=True)
    @pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
    def test_keeps_no_claim_waiting(
        self, database: str, isolation: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        expire("expired-1", "expired-2")
        if database == "mariadb":  # where a repeatable read would lock the gaps that new records go into
            monkeypatch.setitem(connections.settings[database]["OPTIONS"], "isolation_level", isolation)
        deleted, go_on = Event(), Event()
        delete = RecordQuerySet._raw_delete

        def delete_then_wait(*args: Any) -> int:
            count = delete(*args)
            deleted.set()
            assert go_on.wait(PATIENCE)
            return count

        monkeypatch.setattr(RecordQuerySet, "_raw_delete", delete_then_wait)
        running = Background(purging.purge)
        assert deleted.wait(PATIENCE)
        claims = race(*[partial(claim, f"new-{number}") for number in range(20)])
        go_on.set()

        assert [claim.replayed for claim in claims] == [False] * 20
        assert running.result() == 2

    @pytest.mark.parametrize("vendor", SQLITE, indirect=True)
    def test_lets_sqlites_writers_in_between_two_batches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        expire("1", "2", "3")
        pauses: list[float] = []
        monkeypatch.setattr(purging.time, "sleep", pauses.append)

        purging.purge(batch_size=2)

        assert pauses == [0.1, 0.1]

    @pytest.mark.campaign
    def test_deletes_no_live_record_and_refuses_no_claim_under_load(
        self, database: str, no_pauses: None
    ) -> None:
        for number in range(rounds(short=3, full=50)):
            old = [f"{number}-{index}" for index in range(40)]
            expire(*old)
            purges = [partial(purging.purge, batch_size=7)] * 2
            again = [partial(claim_at_last, key) for key in old[::4]]
            new = [partial(claim, f"{number}-new-{index}") for index in range(5)]

            outcomes = race(*purges, *again, *new)

            assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
            assert keys() >= {*old[::4], *[f"{number}-new-{index}" for index in range(5)]}
            assert all(claim(key).replayed for key in old[::4])


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("vendor", SQLITE, indirect=True)
class TestCommand:
    def run(self, *arguments: str, output: StringIO | None = None, **options: Any) -> str:
        output = output or StringIO()
        call_command("idempotency_purge", *arguments, stdout=output, **options)
        return output.getvalue()

    def test_says_how_many_it_deleted(self) -> None:
        expire("1", "2")

        assert self.run() == "2 expired records and 0 sent messages deleted.\n"
        assert self.run() == "0 expired records and 0 sent messages deleted.\n"

    def test_only_counts_in_a_dry_run(self) -> None:
        expire("1")

        assert self.run("--dry-run") == "1 expired record and 0 sent messages to delete.\n"
        assert keys() == {"1"}

    def test_takes_batch_size_limit_and_database(self, database: str, settings: Any, no_pauses: None) -> None:
        expire("1", "2", "3")
        settings.IDEMPOTENCY_DATABASE = None

        output = self.run("--database", database, "--batch-size", "1", "--limit", "2")

        assert output == "2 expired records and 0 sent messages deleted.\n"

    def test_shows_its_progress_on_a_terminal(self, no_pauses: None) -> None:
        expire("1", "2")
        output = self.run("--batch-size", "1", output=Terminal(), no_color=True)

        assert output.startswith("1 …\r2 …\r")

    def test_refuses_a_batch_of_nothing(self) -> None:
        with pytest.raises(CommandError, match="batch_size"):
            self.run("--batch-size", "0")
