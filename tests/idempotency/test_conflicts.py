"""Transactions that fail only for their rivals' sake, on each database."""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from threading import Barrier
from typing import Any

import psycopg
import pytest
from django.db import OperationalError
from django.db.models import F
from django.db.transaction import TransactionManagementError

from idempotency import dialects
from idempotency.exceptions import OperationInProgress
from tests.lab.effects import conflict
from tests.lab.models import Counter
from tests.lab.operations import WITH_RIVALS, Lab, lab_db, on
from tests.lab.races import PATIENCE, Background, race

pytestmark = lab_db


class Stumbles:
    """Raises as often as it is told to, and counts its calls."""

    def __init__(self, times: int) -> None:
        self.left, self.calls = times, 0

    def __call__(self) -> None:
        self.calls += 1
        if self.left:
            self.left -= 1
            raise conflict()


@pytest.fixture
def repeatable_read(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every transaction sees one snapshot, and MariaDB checks it."""
    options = {
        "postgresql": {"isolation_level": psycopg.IsolationLevel.REPEATABLE_READ},
        "mysql": {"isolation_level": "repeatable read", "init_command": "SET innodb_snapshot_isolation = ON"},
    }
    for name, value in options[lab.connection.vendor].items():
        monkeypatch.setitem(lab.connection.settings_dict["OPTIONS"], name, value)
    lab.connection.close()
    yield
    lab.connection.close()


class TestOwnTransaction:
    def test_is_run_again(self, lab: Lab) -> None:
        stumbles, rewinds = Stumbles(2), []

        run = lab.run(handler=lab.handler(then=stumbles), before_rerun=lambda: rewinds.append(1))

        assert (run.value, run.replayed) == ("done", False)
        assert (stumbles.calls, len(rewinds)) == (3, 2)
        assert (lab.done, lab.records.count()) == (["done"], 1)

    @pytest.mark.parametrize("reruns", [0, 3])
    def test_is_run_again_a_bounded_number_of_times(self, lab: Lab, settings: Any, reruns: int) -> None:
        settings.IDEMPOTENCY_RERUNS = reruns
        stumbles = Stumbles(99)

        with pytest.raises(OperationInProgress):
            lab.run(handler=lab.handler(then=stumbles))

        assert stumbles.calls == 1 + reruns
        assert (lab.done, lab.records.count()) == ([], 0)

    def test_is_run_again_for_an_operation_within_the_operation(self, lab: Lab) -> None:
        stumbles = Stumbles(1)
        inner = partial(lab.run, "inner", lab.handler("inner", then=stumbles))

        run = lab.run("outer", lab.handler("outer", then=inner))

        assert (run.value, stumbles.calls) == ("outer", 2)
        assert (lab.done, lab.records.count()) == (["outer", "inner"], 2)

    def test_is_not_run_again_for_another_error(self, lab: Lab) -> None:
        calls: list[int] = []

        def fail() -> None:
            calls.append(1)
            raise OperationalError("disk full")

        with pytest.raises(OperationalError, match="disk full"):
            lab.run(handler=lab.handler(then=fail))

        assert (calls, lab.done) == ([1], [])

    @WITH_RIVALS
    @pytest.mark.usefixtures("repeatable_read")
    def test_survives_a_serialization_failure(self, lab: Lab) -> None:
        """A real one: 40001 of PostgreSQL, 1020 of MariaDB."""
        Counter.objects.using(lab.database).create(name="stock", value=10)
        rivals = [partial(take, lab)]

        def take_between() -> None:
            Counter.objects.using(lab.database).get(name="stock")
            if rivals:
                assert Background(rivals.pop()).result() == 1
            take(lab)

        lab.run(handler=lab.handler(then=take_between))

        assert Counter.objects.using(lab.database).get().value == 8
        assert (lab.done, rivals) == (["done"], [])

    @WITH_RIVALS
    def test_survives_a_deadlock(self, lab: Lab) -> None:
        for name in ("one", "two"):
            Counter.objects.using(lab.database).create(name=name)
        calls: list[str] = []
        results = race(
            [
                partial(lab.run, "forth", lab.handler(then=crosswise(lab, calls, "one", "two"))),
                partial(lab.run, "back", lab.handler(then=crosswise(lab, calls, "two", "one"))),
            ]
        )

        assert [result.value for result in results] == ["done", "done"]
        assert len(calls) == 3
        assert set(Counter.objects.using(lab.database).values_list("value", flat=True)) == {2}
        assert (len(lab.done), lab.records.count()) == (2, 2)


class TestOuterTransaction:
    def test_is_marked_for_rollback(self, lab: Lab) -> None:
        stumbles = Stumbles(1)

        with lab.atomic():
            lab.do("of the outer transaction")
            with pytest.raises(OperationInProgress):
                lab.run(handler=lab.handler(then=stumbles))
            with pytest.raises(TransactionManagementError):
                lab.do("after it")

        assert (stumbles.calls, lab.done, lab.records.count()) == (1, [], 0)
        assert lab.run().value == "done"

    @WITH_RIVALS
    @pytest.mark.usefixtures("repeatable_read")
    def test_with_an_old_snapshot_gets_a_right_answer(self, lab: Lab) -> None:
        """STO-01: its rival has committed since its first read. Never a 500, never a second effect."""
        with lab.atomic():
            assert lab.records.count() == 0
            assert Background(lab.run).result().value == "done"
            with pytest.raises(OperationInProgress):
                lab.run(handler=lab.handler("again"))

        assert (lab.done, lab.records.count()) == (["done"], 1)
        assert lab.run().replayed

    @on("mariadb")
    def test_with_an_old_snapshot_is_read_past_it_where_the_database_can(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """STO-01, by MariaDB's default."""
        monkeypatch.setitem(lab.connection.settings_dict["OPTIONS"], "isolation_level", "repeatable read")
        lab.connection.close()

        with lab.atomic():
            assert lab.records.count() == 0
            assert Background(lab.run).result().value == "done"
            assert lab.run().replayed

        assert lab.done == ["done"]
        lab.connection.close()


class TestWait:
    @WITH_RIVALS
    @pytest.mark.usefixtures("repeatable_read")
    def test_with_an_old_snapshot_ends_with_a_replay(self, lab: Lab) -> None:
        waiting = partial(lab.run, policy={"wait": timedelta(seconds=PATIENCE)})

        results = race([waiting] * 5)

        assert sorted(result.replayed for result in results) == [False] + [True] * 4
        assert lab.done == ["done"]


def take(lab: Lab) -> int:
    return Counter.objects.using(lab.database).filter(name="stock").update(value=F("value") - 1)


def crosswise(lab: Lab, calls: list[str], *names: str) -> Any:
    """Update two rows; at the first call not before the rival has the other one."""

    def update() -> None:
        again = names[0] in calls
        calls.append(names[0])
        for name in names:
            Counter.objects.using(lab.database).filter(name=name).update(value=F("value") + 1)
            if not again and name == names[0]:
                both.wait(PATIENCE)

    return update


both = Barrier(2)


class TestConflict:
    @pytest.mark.parametrize("code", ["40001", "40P01"])
    def test_is_known_by_its_code(self, code: str) -> None:
        assert dialects.is_conflict(with_cause(sqlstate=code))

    @pytest.mark.parametrize("number", [1213, 1205, 1020])
    def test_is_known_by_its_number(self, number: int) -> None:
        assert dialects.is_conflict(with_cause(number, "text"))

    @pytest.mark.parametrize(
        "error", [ValueError("40001"), ValueError(), OperationalError(2006), OperationalError("40001")]
    )
    def test_is_nothing_else(self, error: Exception) -> None:
        assert not dialects.is_conflict(error)


def with_cause(*args: Any, **attributes: Any) -> OperationalError:
    error = OperationalError()
    error.__cause__ = Exception(*args)
    vars(error.__cause__).update(attributes)
    return error
