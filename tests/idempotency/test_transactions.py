"""An operation inside a transaction of its caller, on each database."""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError
from django.utils import timezone

from idempotency.exceptions import OperationInProgress
from idempotency.values import Run
from tests.lab.models import Counter
from tests.lab.operations import WITH_RIVALS, Lab, lab_db
from tests.lab.races import Background

pytestmark = lab_db


class Abort(Exception):
    """Rolls the outer transaction back."""


@pytest.fixture
def lab(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """SQLite's rivals wait for the writer: not for long here."""
    if lab.connection.vendor == "sqlite":
        monkeypatch.setitem(lab.connection.settings_dict["OPTIONS"], "timeout", 0.05)
        lab.connection.close()
    yield lab
    lab.connection.close()


def rival(lab: Lab, **options: Any) -> Any:
    """What another connection is told now."""
    return Background(partial(lab.run, handler=lab.handler("rival"), **options)).result()


class TestOuterTransaction:
    def test_gets_the_replay_of_its_own_operation(self, lab: Lab) -> None:
        with lab.atomic():
            lab.run()
            assert lab.run().replayed

        assert (lab.done, lab.records.count()) == (["done"], 1)

    def test_keeps_rivals_out_until_it_ends(self, lab: Lab) -> None:
        with lab.atomic():
            lab.run()
            assert isinstance(rival(lab), OperationInProgress)

        assert rival(lab).replayed
        assert lab.done == ["done"]

    def test_takes_effect_and_outcome_with_it(self, lab: Lab) -> None:
        def abort() -> None:
            with lab.atomic():
                lab.run()
                raise Abort

        with pytest.raises(Abort):
            abort()

        assert (lab.done, lab.records.count()) == ([], 0)
        assert not rival(lab).replayed

    @pytest.mark.parametrize("expired", [False, True], ids=["fresh", "expired"])
    @WITH_RIVALS
    def test_lets_rivals_in_after_an_answer_that_is_not_kept(self, lab: Lab, expired: bool) -> None:
        """Lock and effect go with the savepoint."""
        if expired:
            lab.run(handler=lab.handler("expired"))
            lab.records.update(expires_at=timezone.now() - timedelta(seconds=1))
        with lab.atomic():
            lab.run(handler=lab.handler("refused", keep=False))
            assert not rival(lab).replayed
            assert lab.run().replayed
            lab.do("still usable")

        assert lab.done == ["expired"] * expired + ["rival", "still usable"]

    def test_that_wrote_before_may_keep_rivals_out_all_the_same(self, lab: Lab) -> None:
        """MariaDB keeps the row's lock sometimes then, SQLite always; nothing happens twice."""
        with lab.atomic():
            lab.do("outer")
            lab.run(handler=lab.handler("refused", keep=False))
            early = rival(lab)
            lab.do("still usable")

        assert rival(lab).replayed == isinstance(early, Run)
        assert isinstance(early, Run) or lab.connection.vendor != "postgresql"
        assert sorted(lab.done) == ["outer", "rival", "still usable"]

    def test_goes_on_after_an_error_in_the_handler(self, lab: Lab) -> None:
        """STO-02"""

        def collide() -> None:
            Counter(name="taken").save(using=lab.database, force_insert=True)

        collide()
        with lab.atomic():
            with pytest.raises(IntegrityError):
                lab.run(handler=lab.handler(then=collide))
            lab.do("still usable")

        assert (lab.done, lab.records.count()) == (["still usable"], 0)

    def test_goes_on_after_a_refusal(self, lab: Lab) -> None:
        """STO-02: the record is there already."""
        lab.run()

        with lab.atomic():
            assert lab.run().replayed
            lab.do("still usable")

        assert lab.done == ["done", "still usable"]
