"""Who may run: one, however many ask, on each database."""

from datetime import timedelta
from functools import partial
from threading import Barrier, Event
from typing import Any

import pytest
from django.utils import timezone

from idempotency import claims
from idempotency.exceptions import OperationInProgress
from idempotency.values import Run
from tests.campaigns import rounds
from tests.lab.operations import Lab, lab_db, retention
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
        """An application server whose clock is wrong, or in another zone, changes nothing."""
        began = timezone.now()
        lab.run(policy={"retention": timedelta(minutes=1)})

        record = lab.records.get()
        assert retention(record) == timedelta(minutes=1)
        assert abs(record.completed_at - began) < timedelta(seconds=PATIENCE)
        assert lab.run().replayed

    def test_may_be_a_millisecond_away(self, lab: Lab) -> None:
        lab.run(policy={"retention": timedelta(milliseconds=1)})

        assert retention(lab.records.get()) == timedelta(milliseconds=1)


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

    def test_of_distinct_keys_runs_them_side_by_side(self, lab: Lab) -> None:
        """STO-07: all are in the handler at the same moment. SQLite has one writer."""
        if lab.connection.vendor == "sqlite":
            pytest.skip("one writer at a time")
        together = Barrier(RIVALS)

        def meet() -> None:
            together.wait(PATIENCE)

        results = race([partial(lab.run, str(n), lab.handler(then=meet)) for n in range(RIVALS)])

        assert [result.replayed for result in results] == [False] * RIVALS
        assert (len(lab.done), lab.records.count()) == (RIVALS, RIVALS)


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

        with pytest.raises(OperationInProgress) as refused:
            lab.run()
        end.set()

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
    def test_that_waits_gets_the_outcome_or_runs(self, lab: Lab, keep: bool) -> None:
        if lab.connection.vendor == "sqlite":
            pytest.skip("waits at BEGIN, by the database's own timeout")
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

    def test_that_waited_in_vain_leaves_the_transaction_usable(self, lab: Lab) -> None:
        if lab.connection.vendor == "sqlite":
            pytest.skip("no two transactions at once")
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


class TestJudge:
    """The primary key decides, were there no lock."""

    @pytest.mark.parametrize("expired", [False, True], ids=["fresh", "expired"])
    def test_rolls_the_late_one_back(self, lab: Lab, monkeypatch: pytest.MonkeyPatch, expired: bool) -> None:
        if lab.connection.vendor != "postgresql":
            pytest.skip("the record itself, or the one writer, is the lock")
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
