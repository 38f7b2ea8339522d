"""What protection costs: statements, and PostgreSQL's messages as libpq counts them."""

from datetime import timedelta
from typing import Any, ClassVar

import pytest
from django.db import connection, connections
from django.utils import timezone

from idempotency.exceptions import KeyReused
from idempotency.models import IdempotencyRecord
from tests.lab import effects
from tests.lab.callers import Caller
from tests.lab.operations import Lab, lab_db
from tests.lab.wire import Traffic, traffic

FIRST = {
    # look; insert the finished record
    "postgresql": 2,
    "sqlite": 2,
    # insert; finish
    "mysql": 2,
}
REPLAY = {
    "postgresql": 1,
    "sqlite": 1,
    # insert in vain; look
    "mysql": 2,
}


def commits(counted: Traffic) -> int:
    return sum("COMMIT" in message.upper() for message in counted.messages)


def ours(counted: Traffic) -> list[str]:
    return [sql for sql in counted.statements if IdempotencyRecord._meta.db_table in sql]


@lab_db
class TestEngine:
    def bare(self, lab: Lab) -> Traffic:
        with traffic(lab.connection) as counted, lab.atomic():
            lab.do("bare")
        return counted

    def test_adds_two_statements_to_the_handlers_own(self, lab: Lab) -> None:
        bare = self.bare(lab)

        with traffic(lab.connection) as counted:
            lab.run()

        assert len(counted.statements) - len(bare.statements) == FIRST[lab.connection.vendor]

    def test_replays_by_one_statement(self, lab: Lab) -> None:
        """On MariaDB by two: the insert is the lock."""
        lab.run()

        with traffic(lab.connection) as counted:
            lab.run()

        assert len(ours(counted)) == REPLAY[lab.connection.vendor]

    @pytest.mark.postgresql
    @pytest.mark.parametrize("database", [pytest.param("default", id="postgresql")])
    def test_adds_two_round_trips_and_no_commit(self, lab: Lab) -> None:
        bare = self.bare(lab)

        with traffic(lab.connection) as counted:
            lab.run()

        assert len(bare.messages) == 3  # BEGIN, INSERT, COMMIT
        assert len(counted.messages) - len(bare.messages) <= 2
        assert commits(counted) == commits(bare) == 1

    @pytest.mark.postgresql
    @pytest.mark.parametrize("database", [pytest.param("default", id="postgresql")])
    def test_replays_in_three_round_trips(self, lab: Lab) -> None:
        lab.run()

        with traffic(lab.connection) as counted:
            assert lab.run().replayed

        assert len(counted.messages) <= 3


@lab_db
class TestReplayFirst:
    """Looks before the transaction."""

    policy: ClassVar[dict[str, Any]] = {"replay_first": True}

    def test_replays_by_one_statement_in_one_round_trip(self, lab: Lab) -> None:
        lab.run()

        with traffic(lab.connection) as counted:
            assert lab.run(policy=self.policy).replayed

        assert len(counted.statements) == 1  # without a BEGIN
        assert len(counted.messages) == (lab.connection.vendor == "postgresql")

    def test_costs_a_first_run_one_statement_more(self, lab: Lab) -> None:
        lab.run("warm up")
        with traffic(lab.connection) as usual:
            lab.run("usual")

        with traffic(lab.connection) as counted:
            assert not lab.run("look first", policy=self.policy).replayed

        assert len(counted.statements) - len(usual.statements) == 1

    def test_never_looks_twice_inside_a_transaction(self, lab: Lab) -> None:
        lab.run()

        with lab.atomic(), traffic(lab.connection) as counted:
            assert lab.run(policy=self.policy).replayed

        assert len(ours(counted)) == REPLAY[lab.connection.vendor]

    def test_refuses_and_runs_as_ever(self, lab: Lab) -> None:
        lab.run(policy=self.policy)
        with pytest.raises(KeyReused):
            lab.run(policy=self.policy, fingerprint=b"2" * 16)
        lab.records.update(expires_at=timezone.now() - timedelta(seconds=1))

        assert not lab.run(policy=self.policy, fingerprint=b"2" * 16).replayed
        assert lab.done == ["done", "done"]


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
class TestView:
    """REST framework's, with session authentication on the same connection."""

    @pytest.mark.parametrize("path", ["does", "views/does"])
    def test_adds_two_round_trips_and_no_commit(self, caller: Caller, path: str, monkeypatch: Any) -> None:
        self.warm_up(caller, path)
        with monkeypatch.context() as patch:
            patch.setitem(connection.settings_dict, name="ATOMIC_REQUESTS", value=True)
            with traffic(connection) as bare:
                caller.post({"does": "does/bare", "views/does": "views/bare"}[path], key=None)

        with traffic(connection) as counted:
            caller.post(path)

        assert effects.records() == 2
        assert len(counted.messages) - len(bare.messages) <= 2
        assert commits(counted) <= commits(bare)

    @pytest.mark.parametrize("path", ["does", "views/does"])
    def test_replays_by_one_statement_in_three_round_trips(self, caller: Caller, path: str) -> None:
        self.warm_up(caller, path)
        caller.post(path)

        with traffic(connection) as counted:
            assert caller.post(path).is_replay

        assert len(ours(counted)) == 1
        assert len(counted.statements) == 3  # and two that find the session and the user
        assert len(counted.messages) - 2 <= 3

    def warm_up(self, caller: Caller, path: str) -> None:
        """The first statements of a connection are other ones."""
        caller.post(path, key="warm up")


class TestPath:
    @pytest.mark.postgresql
    @pytest.mark.django_db
    def test_without_a_key_costs_nothing(self, caller: Caller) -> None:
        with traffic(connections["default"]) as counted:
            caller.post("does", key=None)

        assert ours(counted) == []
