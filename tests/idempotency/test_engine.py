"""One run: kept together or not at all, on each database."""

import logging
from contextlib import nullcontext, suppress
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.transaction import TransactionManagementError

from idempotency import signals
from idempotency.exceptions import KeyReused, OperationInProgress
from idempotency.values import Outcome
from tests.lab.models import Counter
from tests.lab.operations import Lab, lab_db, retention

pytestmark = lab_db


class Defect(Exception):
    pass


def fail() -> None:
    raise Defect


class TestKept:
    def test_effect_and_outcome_are_there_together(self, lab: Lab) -> None:
        run = lab.run(label="for people")

        record = lab.records.get()
        assert (run.value, run.outcome, run.replayed) == ("done", Outcome.of("done"), False)
        assert lab.done == ["done"]
        assert (record.id, record.operation, record.scope, record.key, record.label) == (
            lab.operation().id,
            "lab.do",
            "lab",
            "key-1",
            "for people",
        )
        assert (record.state, record.status, bytes(record.body)) == ("COMPLETED", None, b'"done"')
        assert bytes(record.fingerprint) == b"1" * 16
        assert retention(record) == timedelta(hours=24)

    def test_outcome_is_given_again(self, lab: Lab) -> None:
        outcome = Outcome(status=201, headers=(("Location", "/1"), ("Link", "a")), body=b"\xff\x00" * 999)
        lab.run(handler=lambda: (1, outcome))

        again = lab.run(handler=lab.handler("again"))

        assert (again.value, again.outcome, again.replayed) == (None, outcome, True)
        assert lab.done == []

    @pytest.mark.parametrize("body", [b"", None])
    def test_empty_body_is_not_an_omitted_one(self, lab: Lab, body: bytes | None) -> None:
        lab.run(handler=lambda: (1, Outcome(status=204, body=body)))

        assert lab.run().outcome == Outcome(status=204, body=body)

    def test_replay_writes_nothing(self, lab: Lab) -> None:
        lab.run()
        before = lab.records.values().get()

        lab.run()

        assert lab.records.values().get() == before

    def test_names_of_any_length_and_content_are_kept(self, lab: Lab) -> None:
        """KEY-09, KEY-10"""
        keys = ["Abc-1", "abc-1", "ABC-1 ", "k" * 300, "k" * 300 + "k", "键\U0001f600", "nul\x00", "\ud800"]
        run = partial(lab.run, name="n" * 300, scope="/a\x00b\n" + "s" * 300)

        assert [run(key).replayed for key in keys] == [False] * 8
        assert [run(key).replayed for key in keys] == [True] * 8
        assert (len(lab.done), lab.records.count()) == (8, 8)
        assert {len(name) for name in lab.records.values_list("operation", flat=True)} == {255}


class TestNotKept:
    def test_answer_is_given_and_all_is_rolled_back(self, lab: Lab) -> None:
        run = lab.run(handler=lab.handler("refused", keep=False))

        assert (run.value, run.outcome, run.replayed) == ("refused", None, False)
        assert (lab.done, lab.records.count()) == ([], 0)

    def test_error_is_raised_and_all_is_rolled_back(self, lab: Lab) -> None:
        """KEY-23"""
        with pytest.raises(Defect):
            lab.run(handler=lab.handler(then=fail))

        assert (lab.done, lab.records.count()) == ([], 0)

    def test_key_is_free_again(self, lab: Lab) -> None:
        """KEY-24, KEY-25: also for another request."""
        lab.run(handler=lab.handler(keep=False))
        with pytest.raises(Defect):
            lab.run(handler=lab.handler(then=fail))

        assert not lab.run(fingerprint=b"2" * 16).replayed
        assert lab.done == ["done"]

    @pytest.mark.parametrize("kept", [True, False])
    def test_hooks_follow_the_effect(self, lab: Lab, kept: bool) -> None:
        heard: list[str] = []

        def hook() -> None:
            transaction.on_commit(lambda: heard.append("hook"), using=lab.database)

        lab.run(handler=lab.handler(then=hook, keep=kept))

        assert heard == (["hook"] if kept else [])

    @pytest.mark.parametrize("keep", [True, False])
    def test_swallowed_database_error_keeps_nothing(self, lab: Lab, keep: bool) -> None:
        """The transaction is broken, whatever the handler thinks of it."""

        def swallow() -> None:
            for _ in range(2):
                with suppress(IntegrityError), transaction.atomic(lab.database, savepoint=False):
                    Counter(name="one").save(using=lab.database, force_insert=True)

        error = pytest.raises(TransactionManagementError) if keep else nullcontext()
        with error:
            lab.run(handler=lab.handler(then=swallow, keep=keep))

        assert (lab.done, lab.records.count(), Counter.objects.using(lab.database).count()) == ([], 0, 0)
        assert not lab.run().replayed


class TestFingerprint:
    def test_of_another_request_is_refused(self, lab: Lab) -> None:
        """KEY-02"""
        lab.run()
        before = lab.records.values().get()

        with pytest.raises(KeyReused):
            lab.run(fingerprint=b"2" * 16)

        assert lab.done == ["done"]
        assert lab.records.values().get() == before
        assert lab.run().replayed

    @pytest.mark.parametrize(("first", "second"), [(None, b"2" * 16), (b"1" * 16, None), (None, None)])
    def test_that_is_none_compares_nothing(self, lab: Lab, first: bytes | None, second: bytes | None) -> None:
        lab.run(fingerprint=first)

        assert lab.run(fingerprint=second).replayed


class TestRecursion:
    def test_is_refused(self, lab: Lab) -> None:
        """Before its handler runs again: the database's own locks would let it in."""
        calls: list[str] = []
        inner = lab.handler("inner", then=lambda: calls.append("inner"))

        with pytest.raises(OperationInProgress):
            lab.run(handler=lab.handler(then=lambda: lab.run(handler=inner)))

        assert (calls, lab.done, lab.records.count()) == ([], [], 0)

    def test_into_another_operation_is_fine(self, lab: Lab) -> None:
        lab.run("outer", lab.handler("outer", then=lambda: lab.run("inner", lab.handler("inner"))))

        assert lab.done == ["outer", "inner"]
        assert lab.records.count() == 2
        assert [lab.run(key).replayed for key in ("outer", "inner")] == [True, True]

    def test_undoes_the_inner_operation_with_the_outer_one(self, lab: Lab) -> None:
        def inner() -> None:
            lab.run("inner")
            fail()

        with pytest.raises(Defect):
            lab.run("outer", lab.handler(then=inner))

        assert (lab.done, lab.records.count()) == ([], 0)


class TestSignals:
    def test_tell_what_happened(self, lab: Lab, heard: list[Any]) -> None:
        one, other = lab.operation(), lab.operation(fingerprint=b"2" * 16)

        lab.run()
        lab.run()
        with pytest.raises(KeyReused):
            lab.run(fingerprint=b"2" * 16)
        lab.run("refused", lab.handler(keep=False))

        assert heard == [("executed", one), ("replayed", one), ("refused", other, "idempotency_key_reused")]

    def test_tell_of_an_execution_after_its_commit(self, lab: Lab, heard: list[Any]) -> None:
        with lab.atomic():
            lab.run()
            assert heard == []
        assert heard == [("executed", lab.operation())]

    def test_cannot_break_an_operation(self, lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
        def receiver(**kwargs: Any) -> None:
            fail()

        signals.executed.connect(receiver)
        try:
            assert lab.run().value == "done"
        finally:
            signals.executed.disconnect(receiver)

        assert lab.done == ["done"]
        assert "Defect" in caplog.text


class TestLogs:
    def test_name_the_operation_and_never_the_whole_key(
        self, lab: Lab, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, "idempotency")
        secret = Outcome(status=201, body=b"4111-1111")
        lab.run("secret-key", lambda: (1, secret))
        lab.run("secret-key")
        with pytest.raises(KeyReused):
            lab.run("secret-key", fingerprint=b"2" * 16)

        operation = lab.operation("secret-key")
        assert [record.getMessage() for record in caplog.records if record.name == "idempotency"] == [
            f"executed lab.do secre… ({operation.id})",
            f"replayed lab.do secre… ({operation.id})",
            f"refused lab.do secre… ({operation.id}): idempotency_key_reused",
        ]
        told = repr([vars(record) for record in caplog.records])
        assert "secret-key" not in told
        assert "4111" not in told
        assert caplog.records[0].record_id == str(operation.id)
        assert caplog.records[0].fingerprint == "31" * 16
