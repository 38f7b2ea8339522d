"""Repeats are answered from the cache, and never otherwise than the database would."""

from typing import Any

import pytest
from django.db import connection, transaction

from idempotency import replays
from idempotency.exceptions import KeyReused
from idempotency.models import IdempotencyRecord
from idempotency.rows import Found
from idempotency.values import Outcome
from tests.lab import effects
from tests.lab.caches import Server, cached, every_kind
from tests.lab.callers import Caller
from tests.lab.operations import Lab, lab_db
from tests.lab.services import grant
from tests.lab.wire import traffic

pytestmark = pytest.mark.usefixtures("replay_cache")


@lab_db
class TestHit:
    @every_kind
    def test_sends_nothing_to_the_database(self, lab: Lab) -> None:
        first = lab.run()

        with traffic(lab.connection) as counted:
            again = lab.run()

        assert (again.replayed, again.outcome) == (True, first.outcome)
        assert (counted.statements, counted.messages) == ([], [])
        assert lab.done == ["done"]

    def test_does_not_even_need_the_record(self, lab: Lab) -> None:
        lab.run()
        lab.records.all().delete()

        assert lab.run().replayed

    def test_is_told_as_any_replay(self, lab: Lab, heard: list[tuple[Any, ...]]) -> None:
        lab.run()
        lab.run()

        assert [event[0] for event in heard] == ["executed", "replayed"]

    @every_kind
    def test_refuses_another_fingerprint_without_asking_the_database(self, lab: Lab) -> None:
        lab.run()

        with traffic(lab.connection) as counted, pytest.raises(KeyReused):
            lab.run(fingerprint=b"2" * 16)

        assert counted.statements == []
        assert lab.done == ["done"]

    def test_is_of_this_operation_scope_and_key_alone(self, lab: Lab) -> None:
        lab.run()
        others = [{"key": "key-2"}, {"scope": "another"}, {"name": "another"}]

        assert [lab.run(**other).replayed for other in others] == [False] * 3
        assert len(lab.done) == 4

    @pytest.mark.parametrize(
        "outcome",
        [
            Outcome(status=201, headers=(("Location", "/订单"), ("ETag", 'W/"1"')), body=b"\xff\x00\n{}"),
            Outcome(status=204, body=b""),
            Outcome(status=200, body=None),
            Outcome.of({"amount": [1, None], "name": "茶"}),
        ],
        ids=["binary", "empty", "omitted", "value"],
    )
    def test_gives_the_outcome_to_the_byte(self, lab: Lab, outcome: Outcome) -> None:
        lab.run(handler=lambda: (None, outcome))

        assert cached(lab) == Found(b"1" * 16, outcome)

    def test_compares_nothing_where_there_is_no_fingerprint(self, lab: Lab) -> None:
        lab.run(fingerprint=None)

        assert lab.run(fingerprint=b"2" * 16).replayed


@lab_db
class TestKeep:
    def test_waits_for_the_outermost_commit(self, lab: Lab) -> None:
        with lab.atomic():
            lab.run()
            assert cached(lab) is None

        assert cached(lab) is not None

    def test_keeps_nothing_that_is_rolled_back(self, lab: Lab, redis: Server) -> None:
        with lab.atomic():
            lab.run()
            lab.run()
            transaction.set_rollback(rollback=True, using=lab.database)

        assert (lab.done, redis.names()) == ([], [])

    def test_keeps_nothing_of_a_savepoint_that_is_rolled_back(self, lab: Lab, redis: Server) -> None:
        with lab.atomic(), lab.atomic():
            lab.run()
            transaction.set_rollback(rollback=True, using=lab.database)

        assert (lab.done, redis.names()) == ([], [])

    def test_keeps_nothing_of_a_handler_that_fails(self, lab: Lab, redis: Server) -> None:
        def fail() -> Any:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            lab.run(handler=fail)
        lab.run(handler=lab.handler(keep=False))

        assert redis.names() == []

    def test_keeps_what_is_found_in_the_database(self, lab: Lab, redis: Server) -> None:
        lab.run()
        for policy in ({}, {"replay_first": True}):
            redis.empty()
            assert lab.run(policy=policy).replayed
            assert cached(lab) is not None

    def test_leaves_large_bodies_to_the_database(self, lab: Lab, redis: Server) -> None:
        largest = Outcome(status=200, body=b"x" * replays.LARGEST)
        larger = Outcome(status=200, body=b"x" * (replays.LARGEST + 1))
        lab.run("largest", lambda: (None, largest))
        lab.run("larger", lambda: (None, larger))

        assert (cached(lab, "largest"), cached(lab, "larger")) == (Found(b"1" * 16, largest), None)
        assert lab.run("larger").outcome == larger

    def test_names_the_database_not_its_alias(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        lab.run()
        monkeypatch.setitem(lab.connection.settings_dict, "NAME", "another")

        assert cached(lab) is None


@pytest.mark.django_db
class TestTestCase:
    def test_keeps_nothing_that_the_test_rolls_back(
        self, redis: Server, django_assert_num_queries: Any
    ) -> None:
        assert [grant.run(user_id=1, order_no="A-1").replayed for _ in range(2)] == [False, True]
        assert redis.names() == []


@pytest.mark.django_db(transaction=True)
class TestView:
    @pytest.mark.parametrize("path", ["does", "views/does"])
    def test_asks_the_database_who_it_is_and_nothing_else(self, caller: Caller, path: str) -> None:
        first = caller.post(path)

        with traffic(connection) as counted:
            again = caller.post(path)

        assert (again.is_replay, again.body) == (True, first.body)
        assert len(counted.statements) == 2  # session and user
        assert not any(IdempotencyRecord._meta.db_table in sql for sql in counted.statements)
        assert effects.done() == ["done"]

    @pytest.mark.parametrize("path", ["does", "views/does"])
    def test_never_gives_it_to_another_user(self, caller: Caller, stranger: Caller, path: str) -> None:
        caller.post(path)

        assert [stranger.post(path).is_replay for _ in range(2)] == [False, True]
        assert effects.done() == ["done"] * 2

    def test_refuses_another_body(self, caller: Caller) -> None:
        caller.post("does", {"amount": 1})

        assert caller.post("does", {"amount": 2}).status == 422
        assert effects.done() == ["done"]

    def test_in_a_request_that_is_one_transaction(self, caller: Caller, monkeypatch: Any) -> None:
        monkeypatch.setitem(connection.settings_dict, name="ATOMIC_REQUESTS", value=True)
        first = caller.post("does")

        with traffic(connection) as counted:
            again = caller.post("does")

        assert (again.is_replay, again.body) == (True, first.body)
        assert not any(IdempotencyRecord._meta.db_table in sql for sql in counted.statements)

    def test_that_fails_in_a_request_that_is_one_transaction_keeps_nothing(
        self, caller: Caller, redis: Server, monkeypatch: Any
    ) -> None:
        monkeypatch.setitem(connection.settings_dict, name="ATOMIC_REQUESTS", value=True)
        with transaction.atomic():
            caller.post("does")
            transaction.set_rollback(rollback=True)

        assert (effects.done(), redis.names()) == ([], [])
