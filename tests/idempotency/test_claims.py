"""Who may run: one, however many ask, on each database."""

from datetime import timedelta
from functools import partial
from threading import Barrier
from typing import Any

import pytest
from django.utils import timezone

from idempotency import claims
from idempotency.exceptions import OperationInProgress
from idempotency.values import Run
from tests.campaigns import rounds
from tests.lab.operations import WITH_RIVALS, Lab, lab_db, on, retention
from tests.lab.races import PATIENCE, Background, race

pytestmark = lab_db

RIVALS = 20
WAIT = {"wait": timedelta(seconds=PATIENCE)}


def expire(lab: Lab) -> None:
    lab.records.update(expires_at=timezone.now() - timedelta(seconds=1))


class TestExpiry:
    def test_makes_a_record_as_good_as_none(self, lab: Lab) -> None:
        lab.run(fingerprint=b"1" * 16)
        expire(lab)

        run = lab.run(handler=lab.handler("again"), fingerprint=b"2" * 16)

        assert (run.value, run.replayed) == ("again", False)
        assert lab.done == ["done", "again"]

    def test_renews_the_record(self, lab: Lab) -> None:
        lab.run(fingerprint=b"1" * 16)
        first = lab.records.get()
        expire(lab)

        lab.run(handler=lab.handler("again"), fingerprint=b"2" * 16, policy={"retention": timedelta(days=2)})

        again = lab.records.get()
        assert (again.pk, bytes(again.body), bytes(again.fingerprint)) == (first.pk, b'"again"', b"2" * 16)
        assert again.created_at > first.completed_at
        assert retention(again) == timedelta(days=2)
        assert lab.run(fingerprint=b"2" * 16).replayed

    def test_is_told(self, lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
        """KEY-19: the reuse is visible in the log."""
        lab.run()
        expire(lab)
        caplog.clear()

        lab.run()

        warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
        assert warnings == [f"executed again {lab.operation()}: its earlier outcome had expired"]

    @pytest.mark.parametrize("keep", [True, False])
    def test_is_undone_with_a_takeover_that_is_rolled_back(self, lab: Lab, keep: bool) -> None:
        lab.run()
        expire(lab)
        before = lab.records.values().get()

        lab.run(handler=lab.handler("refused", keep=False))

        assert lab.records.values().get() == before
        assert lab.done == ["done"]
        assert not lab.run().replayed

    def test_never_comes_with_no_retention(self, lab: Lab) -> None:
        lab.run(policy={"retention": None})

        assert lab.records.get().expires_at is None
        assert lab.run().replayed

    def test_follows_the_databases_clock(self, lab: Lab) -> None:
        """In UTC, also where the session is in another zone."""
        if lab.connection.vendor == "mysql":
            with lab.connection.cursor() as cursor:
                cursor.execute("SET time_zone = '+08:00'")
        began = timezone.now()
        lab.run(policy={"retention": timedelta(minutes=1)})

        record = lab.records.get()
        assert retention(record) == timedelta(minutes=1)
        assert abs(record.completed_at - began) < timedelta(seconds=PATIENCE)
        assert lab.run().replayed
        lab.connection.close()

    def test_may_be_a_millisecond_away(self, lab: Lab) -> None:
        lab.run(policy={"retention": timedelta(milliseconds=1)})

        assert retention(lab.records.get()) == timedelta(milliseconds=1)


class TestUnfinishedRecord:
    def test_is_neither_replayed_nor_run(self, lab: Lab) -> None:
        """Its outcome is not there yet."""
        lab.run()
        lab.records.update(state="IN_PROGRESS", body=None, completed_at=None, expires_at=None)

        with pytest.raises(OperationInProgress):
            lab.run(handler=lab.handler("again"))

        assert lab.done == ["done"]


class TestRace:
    """KEY-01, KEY-02"""

    def outcomes(self, lab: Lab, results: list[Any]) -> dict[str, int]:
        """Count who ran, who got the replay and who was told to come again."""
        kinds = {"ran": 0, "replayed": 0, "in progress": 0}
        for result in results:
            if isinstance(result, OperationInProgress):
                kinds["in progress"] += 1
            else:
                assert isinstance(result, Run), result
                kinds["replayed" if result.replayed else "ran"] += 1
        return kinds

    @pytest.mark.parametrize("expired", [False, True], ids=["fresh", "expired"])
    def test_has_one_winner(self, lab: Lab, expired: bool) -> None:
        for number in range(rounds(short=3, full=50)):
            key = f"key-{number}"
            if expired:
                lab.run(key)
                expire(lab)
            before = len(lab.done)

            kinds = self.outcomes(lab, race([partial(lab.run, key)] * RIVALS))

            assert (kinds["ran"], len(lab.done) - before) == (1, 1)
            assert sum(kinds.values()) == RIVALS
            assert (lab.records.count(), lab.run(key).replayed) == (number + 1, True)
            if lab.connection.vendor == "sqlite":
                assert kinds["in progress"] == 0  # they wait for the one writer

    @pytest.mark.parametrize("expired", [False, True], ids=["fresh", "expired"])
    def test_of_waiting_rivals_has_one_winner_and_replays(self, lab: Lab, expired: bool) -> None:
        if expired:
            lab.run()
            expire(lab)

        kinds = self.outcomes(lab, race([partial(lab.run, policy=WAIT)] * RIVALS))

        assert kinds == {"ran": 1, "replayed": RIVALS - 1, "in progress": 0}
        assert lab.done == ["done"] * (1 + expired)

    def test_after_losers_that_keep_nothing_has_one_winner(self, lab: Lab) -> None:
        calls = [partial(lab.run, handler=lab.handler("refused", keep=False), policy=WAIT)] * (RIVALS // 2)
        calls += [partial(lab.run, policy=WAIT)] * (RIVALS // 2)

        race(calls)

        assert (lab.done, lab.records.count()) == (["done"], 1)

    def test_of_two_bodies_has_one_winner(self, lab: Lab) -> None:
        """KEY-02: never the winner's outcome for the other body."""
        prints = [b"1" * 16, b"2" * 16] * (RIVALS // 2)

        results = race([partial(lab.run, fingerprint=each) for each in prints])

        winner = bytes(lab.records.get().fingerprint)
        told = {each for each, result in zip(prints, results, strict=True) if isinstance(result, Run)}
        assert (lab.done, told) == (["done"], {winner})

    @WITH_RIVALS
    def test_of_distinct_keys_runs_them_side_by_side(self, lab: Lab) -> None:
        """STO-07: all are in the handler at the same moment. SQLite has one writer."""
        together = Barrier(RIVALS)

        def meet() -> None:
            together.wait(PATIENCE)

        results = race([partial(lab.run, str(n), lab.handler(then=meet)) for n in range(RIVALS)])

        assert [result.replayed for result in results] == [False] * RIVALS
        assert (len(lab.done), lab.records.count()) == (RIVALS, RIVALS)


class TestJudge:
    """The primary key decides, were there no lock."""

    @pytest.mark.parametrize("expired", [False, True], ids=["fresh", "expired"])
    @on("postgresql")
    def test_rolls_the_late_one_back(self, lab: Lab, monkeypatch: pytest.MonkeyPatch, expired: bool) -> None:
        if expired:
            lab.run(handler=lab.handler("expired"))
            expire(lab)
        blind = [None]

        def look(self: Any, *args: Any, **kwargs: Any) -> Any:
            return blind.pop() if blind else real(self, *args, **kwargs)

        real = claims.AtomicClaim._look
        kind = type(claims.claim(lab.connection.alias, lab.operation()))
        monkeypatch.setattr(kind, "attempt", lambda self, wait: self._found(look(self)))

        late = lab.run(handler=lab.handler("late", then=lambda: Background(lab.run).result()))

        assert late.replayed
        assert lab.done == ["expired"] * expired + ["done"]
