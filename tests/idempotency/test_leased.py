"""Operations that leave the database: steps, takeover, fence and the three endings, on each database."""

from datetime import timedelta
from threading import Event
from typing import Any

import pytest
from django.contrib.admin import AdminSite
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from idempotency.admin import RecordAdmin
from idempotency.exceptions import ClaimLost, OperationInProgress, OutcomeUnknown, Refused, StoreUnavailable
from idempotency.models import IdempotencyRecord, State
from tests.lab.leases import Shop
from tests.lab.operations import Lab, lab_db
from tests.lab.races import PATIENCE, Background, race

pytestmark = lab_db


@pytest.fixture
def shop(lab: Lab) -> Shop:
    return Shop(lab)


def fail(error: Exception) -> Any:
    def raiser() -> None:
        raise error

    return raiser


class TestCompleted:
    def test_does_each_part_once(self, shop: Shop, lab: Lab) -> None:
        runs = [shop.pay(), shop.pay()]

        assert [(run.replayed, run.outcome.value) for run in runs] == [(False, "settled"), (True, "settled")]
        assert (lab.done, len(shop.calls)) == (["reserved", "settled"], 1)

    def test_keeps_the_outcome_and_ends_the_claim(self, shop: Shop, lab: Lab) -> None:
        shop.pay()

        record = lab.records.get()
        assert (record.state, record.attempts, record.expires_at) == (State.COMPLETED, 1, None)
        assert (record.token, record.leased_until, record.steps) == (None, None, None)

    def test_is_told_after_the_commit(self, shop: Shop, lab: Lab, heard: list[tuple[Any, ...]]) -> None:
        shop.pay()
        shop.pay()

        assert heard == [("executed", lab.operation()), ("replayed", lab.operation())]

    def test_is_done_once_however_many_ask(self, shop: Shop, lab: Lab) -> None:
        results = race([shop.pay] * 12)

        assert {type(result) for result in results if isinstance(result, Exception)} <= {OperationInProgress}
        assert (lab.done, len(shop.calls)) == (["reserved", "settled"], 1)


class TestClaim:
    def test_is_committed_before_the_work_begins(self, shop: Shop, lab: Lab) -> None:
        seen: list[str] = []
        look = lambda: seen.extend(lab.records.values_list("state", flat=True))  # noqa: E731

        shop.pay(charging=lambda: Background(look).result())

        assert seen == [State.IN_PROGRESS]

    def test_keeps_rivals_out_while_it_is_leased(self, shop: Shop, lab: Lab) -> None:
        rivals: list[Any] = []
        shop.pay(charging=lambda: rivals.append(Background(shop.pay).result()))

        assert [type(rival) for rival in rivals] == [OperationInProgress]
        assert (lab.done, len(shop.calls)) == (["reserved", "settled"], 1)

    def test_lets_a_waiting_repeat_have_the_outcome(self, shop: Shop) -> None:
        waiting: list[Background] = []
        begin = lambda: waiting.append(  # noqa: E731
            Background(lambda: shop.pay(wait=timedelta(seconds=PATIENCE)))
        )

        shop.pay(charging=begin)

        assert waiting[0].result().replayed
        assert len(shop.calls) == 1

    def test_is_refused_inside_a_transaction(self, shop: Shop, lab: Lab) -> None:
        with lab.atomic(), pytest.raises(ImproperlyConfigured, match="cannot run inside a transaction"):
            shop.pay()

        assert (lab.done, shop.calls, lab.records.count()) == ([], [], 0)

    def test_is_renewed_by_each_heartbeat(self, shop: Shop, lab: Lab) -> None:
        def late() -> None:
            shop.end_lease()
            shop.claims[0].heartbeat()
            assert isinstance(Background(shop.pay).result(), OperationInProgress)

        shop.pay(charging=late)

        assert lab.done == ["reserved", "settled"]

    def test_asks_the_provider_with_one_key_for_one_effect(self, shop: Shop, lab: Lab) -> None:
        shop.pay()
        record = lab.records.get()

        assert shop.calls == [shop.claims[0].provider_key("charge")]
        assert shop.claims[0].operation_id == record.operation_id
        assert shop.calls[0] != shop.claims[0].provider_key("refund")


class TestTakeover:
    def test_resumes_behind_the_last_finished_step(self, shop: Shop, lab: Lab) -> None:
        with pytest.raises(RuntimeError):
            shop.pay(charged=fail(RuntimeError("crashed")))
        assert (lab.done, len(shop.calls)) == (["reserved"], 1)

        run = shop.pay()

        assert (run.replayed, lab.done, len(shop.calls)) == (False, ["reserved", "settled"], 1)
        assert shop.claims[1].attempts == 2

    def test_repeats_a_call_that_was_cut_off_with_the_same_key(self, shop: Shop, lab: Lab) -> None:
        with pytest.raises(OutcomeUnknown):
            shop.pay(charging=fail(OutcomeUnknown("timeout")))

        shop.pay()

        assert lab.done == ["reserved", "settled"]
        assert len(shop.calls) == 2
        assert shop.calls[0] == shop.calls[1]

    def test_waits_for_the_end_of_the_lease_of_a_process_that_died(self, shop: Shop, lab: Lab) -> None:
        with pytest.raises(SystemExit):  # like a kill: nothing is released
            shop.pay(charging=fail(SystemExit()))  # type: ignore[arg-type]
        with pytest.raises(OperationInProgress):
            shop.pay()
        shop.end_lease()

        shop.pay()

        assert (lab.done, len(set(shop.calls))) == (["reserved", "settled"], 1)

    def test_happens_once_however_many_are_waiting(self, shop: Shop, lab: Lab) -> None:
        with pytest.raises(SystemExit):
            shop.pay(charging=fail(SystemExit()))  # type: ignore[arg-type]
        shop.end_lease()

        race([shop.pay] * 12)

        assert (lab.done, len(shop.calls)) == (["reserved", "settled"], 2)

    def test_is_not_for_another_request(self, shop: Shop, lab: Lab) -> None:
        with pytest.raises(OutcomeUnknown):
            shop.pay(charging=fail(OutcomeUnknown("timeout")))
        lab.records.update(fingerprint=b"2" * 16)

        with pytest.raises(Exception, match="used for another request"):
            shop.pay()

        assert len(shop.calls) == 1


class TestLateOwner:
    """One whose lease ended while it was paused, and who comes back while its successor still works."""

    @pytest.mark.parametrize("point", ["charged", "charging"])
    def test_writes_nothing(self, shop: Shop, lab: Lab, point: str) -> None:
        paused, resume, working, finish = Event(), Event(), Event(), Event()
        late = Background(lambda: shop.pay(**{point: lambda: (paused.set(), resume.wait(PATIENCE))}))
        assert paused.wait(PATIENCE)
        shop.end_lease()
        successor = Background(lambda: shop.pay(charged=lambda: (working.set(), finish.wait(PATIENCE))))
        assert working.wait(PATIENCE)

        resume.set()
        assert isinstance(late.result(), ClaimLost)
        assert lab.done == ["reserved"]
        finish.set()

        assert successor.result().outcome.value == "settled"
        assert (lab.done, len(set(shop.calls))) == (["reserved", "settled"], 1)

    def test_leaves_the_claim_of_its_successor_alone(self, shop: Shop, lab: Lab) -> None:
        def taken_over() -> None:
            shop.end_lease()
            with pytest.raises(OutcomeUnknown):
                shop.pay(charged=fail(OutcomeUnknown("timeout")))

        with pytest.raises(ClaimLost):
            shop.pay(charged=taken_over)

        record = lab.records.get()
        assert (record.state, record.attempts, lab.done) == (State.IN_PROGRESS, 2, ["reserved"])


class TestEnding:
    def test_refused_for_certain_frees_the_key_for_a_new_effect(self, shop: Shop, lab: Lab) -> None:
        with pytest.raises(Refused):
            shop.pay(charging=fail(Refused("declined")))
        assert lab.records.count() == 0

        shop.pay()

        assert lab.done == ["reserved", "reserved", "settled"]
        assert shop.calls[0] != shop.calls[1]

    def test_unknown_ends_the_lease_at_once(self, shop: Shop, lab: Lab) -> None:
        with pytest.raises(OutcomeUnknown):
            shop.pay(charging=fail(OutcomeUnknown("timeout")))

        record = lab.records.unfinished().get()
        assert (record.operation_id, record.attempts) == (shop.claims[0].operation_id, 1)

    def test_raised_before_anything_happened_leaves_nothing(self, shop: Shop, lab: Lab) -> None:
        with pytest.raises(LookupError):
            shop.pay(reserving=fail(LookupError("no such order")))

        assert (lab.records.count(), lab.done) == (0, [])

    def test_whose_first_commit_is_in_doubt_stays_to_be_resumed(
        self, shop: Shop, lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its writes may be there: forgetting the claim would do them again."""
        commit = BaseDatabaseWrapper._commit
        in_doubt: list[Exception] = []

        def commit_and_break(connection: BaseDatabaseWrapper) -> None:
            commit(connection)
            if in_doubt:
                raise in_doubt.pop()

        monkeypatch.setattr(BaseDatabaseWrapper, "_commit", commit_and_break)
        with pytest.raises(StoreUnavailable):
            shop.pay(reserving=lambda: in_doubt.append(OperationalError("the connection broke")))

        shop.pay()

        assert (lab.done, len(shop.calls)) == (["reserved", "settled"], 1)

    def test_raised_in_the_last_step_rolls_it_back(self, shop: Shop, lab: Lab) -> None:
        with pytest.raises(DatabaseError):
            shop.pay(settling=fail(DatabaseError("no room")))
        assert lab.done == ["reserved"]

        shop.pay()

        assert (lab.done, len(shop.calls)) == (["reserved", "settled"], 1)


def test_people_see_that_an_ended_lease_is_to_be_resumed(shop: Shop, lab: Lab) -> None:
    admin = RecordAdmin(IdempotencyRecord, AdminSite())
    with pytest.raises(OutcomeUnknown):
        shop.pay(charging=fail(OutcomeUnknown("timeout")))

    assert admin.repeats(lab.records.get()) == "resumes what was begun"
