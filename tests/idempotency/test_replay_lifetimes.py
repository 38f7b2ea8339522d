"""An entry never outlives its record, and never stands for another one's outcome."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from idempotency import leased, replays
from idempotency.policies import Policy
from idempotency.values import Outcome
from tests.lab.caches import Server, cached
from tests.lab.operations import Lab, lab_db
from tests.lab.wire import traffic

pytestmark = pytest.mark.usefixtures("replay_cache")


@lab_db
class TestRetention:
    """An entry never outlives its record."""

    def entry(self, redis: Server, lab: Lab) -> float:
        return redis.left(redis.entry_name(lab.database, lab.operation()))

    @pytest.mark.parametrize("retention", [None, timedelta(days=1)], ids=["for ever", "a day"])
    def test_is_an_hour_at_most(self, lab: Lab, redis: Server, retention: timedelta | None) -> None:
        lab.run(policy={"retention": retention})

        assert 3500 < self.entry(redis, lab) <= 3600

    def test_is_the_records_and_a_second_less(self, lab: Lab, redis: Server) -> None:
        lab.run(policy={"retention": timedelta(minutes=10)})

        assert 540 < self.entry(redis, lab) <= 599

    def test_is_what_the_databases_clock_leaves(self, lab: Lab, redis: Server) -> None:
        lab.run()
        lab.records.update(expires_at=timezone.now() + timedelta(minutes=10))
        redis.empty()
        lab.run()

        assert 540 < self.entry(redis, lab) <= 599.1

    def test_is_nothing_for_less_than_a_second(self, lab: Lab, redis: Server) -> None:
        lab.run(policy={"retention": timedelta(seconds=1)})

        assert redis.names() == []

    def test_counts_from_the_outcome_not_from_a_late_commit(
        self, lab: Lab, redis: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = replays.time.monotonic
        with lab.atomic():
            lab.run(policy={"retention": timedelta(minutes=10)})
            monkeypatch.setattr(replays.time, "monotonic", lambda: now() + 300)

        assert 240 < self.entry(redis, lab) <= 299

    def test_ends_by_the_entrys_own_time_where_the_cache_took_it_late(
        self, lab: Lab, redis: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A cache that hung takes what it was sent when it goes on, an hour later say."""
        lab.run(policy={"retention": timedelta(minutes=10)})
        with redis.client as client:
            client.persist(redis.entry_name(lab.database, lab.operation()))
        lab.records.update(expires_at=timezone.now() - timedelta(seconds=1))
        now = replays.time.time
        monkeypatch.setattr(replays.time, "time", lambda: now() + 600)

        assert not lab.run().replayed
        assert lab.done == ["done", "done"]

    def test_makes_room_for_the_next_outcome(self, lab: Lab, redis: Server) -> None:
        lab.run()
        lab.records.update(expires_at=timezone.now() - timedelta(seconds=1))
        redis.empty()  # as its time has come
        lab.run(handler=lab.handler("second"))

        assert lab.run().outcome == Outcome.of("second")

    def test_lets_go_of_an_expired_outcome_whose_successor_cannot_stay(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lab.run()
        lab.records.update(expires_at=timezone.now() - timedelta(seconds=1))
        with monkeypatch.context() as patch:  # a repeat that has just missed it
            patch.setattr(replays, "get", lambda *args: None)
            lab.run(handler=lambda: (None, Outcome(body=b"x" * (replays.LARGEST + 1))))

        assert cached(lab) is None


@lab_db
class TestLeased:
    def run(self, lab: Lab, answer: str = "done", **policy: Any) -> Any:
        policy = Policy(using=lab.database, lease=timedelta(seconds=30), **policy)
        return leased.run(
            lab.operation(),
            lambda claim: (None, claim.complete_with(lambda: Outcome.of(answer))),
            policy=policy,
        )

    def test_sends_nothing_to_the_database(self, lab: Lab) -> None:
        self.run(lab)

        with traffic(lab.connection) as counted:
            again = self.run(lab, "another")

        assert (again.replayed, again.outcome) == (True, Outcome.of("done"))
        assert counted.statements == []

    def test_keeps_what_is_found_in_the_database(self, lab: Lab, redis: Server) -> None:
        self.run(lab)
        redis.empty()
        assert self.run(lab).replayed

        assert cached(lab) is not None

    def test_an_unfinished_one_is_never_there(self, lab: Lab, redis: Server) -> None:
        seen = []

        def handle(claim: leased.Claim) -> Any:
            claim.step("begin", lambda: None)
            seen.extend(redis.names())
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            leased.run(
                lab.operation(), handle, policy=Policy(using=lab.database, lease=timedelta(seconds=30))
            )

        assert (seen, redis.names()) == ([], [])

    def test_the_taker_of_an_expired_one_lets_go_of_it(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.run(lab)
        lab.records.update(expires_at=timezone.now() - timedelta(seconds=1))
        seen = []

        def handle(claim: leased.Claim) -> Any:
            monkeypatch.undo()
            seen.append(cached(lab))
            return None, claim.complete_with(lambda: Outcome.of("second"))

        monkeypatch.setattr(replays, "get", lambda *args: None)  # a repeat that has just missed it
        leased.run(lab.operation(), handle, policy=Policy(using=lab.database, lease=timedelta(seconds=30)))

        assert seen == [None]
        assert self.run(lab).outcome == Outcome.of("second")
