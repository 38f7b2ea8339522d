"""Service functions that happen once: ``@idempotent``."""

import inspect
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from idempotency.decorators import idempotent
from idempotency.exceptions import IdempotencyError, KeyInvalid, KeyMissing, KeyReused
from idempotency.models import IdempotencyRecord
from tests.lab import effects
from tests.lab.services import agrant, consume, deduct, grant

pytestmark = pytest.mark.django_db


class TestService:
    def test_happens_once(self) -> None:
        results = [grant(user_id=1, order_no="A", amount=Decimal("39.80")) for _ in range(3)]

        expected = {
            "order_no": "A",
            "amount": Decimal("39.80"),
            "until": timedelta(days=7),
            "parts": ["a", "b"],
        }
        assert results == [expected] * 3
        assert [str(each["amount"]) for each in results] == ["39.80"] * 3
        assert effects.done() == ["granted A"]

    def test_tells_whether_it_is_a_replay(self) -> None:
        runs = [grant.run(user_id=1, order_no="A") for _ in range(2)]

        assert [run.replayed for run in runs] == [False, True]
        assert runs[0].value == runs[1].value == grant(user_id=1, order_no="A")

    def test_is_recorded_by_its_name(self) -> None:
        grant(user_id=1, order_no="A")

        record = IdempotencyRecord.objects.get()
        assert (record.operation, record.scope, record.key) == ("lab.grant", "1", "A")
        assert (record.status, record.expires_at) == (None, None)

    def test_keeps_its_face(self) -> None:
        assert (grant.__name__, grant.__doc__, grant.__module__) == (
            "grant",
            "Grant a coupon.",
            "tests.lab.services",
        )
        assert list(inspect.signature(grant).parameters) == ["user_id", "order_no", "campaign", "amount"]

    def test_that_fails_happens_not_at_all(self) -> None:
        @idempotent("lab.fails", key="key")
        def fail(key: str) -> None:
            effects.do("failed")
            raise ValueError(key)

        with pytest.raises(ValueError, match="A"):
            fail("A")

        assert (effects.done(), effects.records()) == ([], 0)

    def test_whose_result_cannot_be_kept_happens_not_at_all(self) -> None:
        @idempotent("lab.object", key="key")
        def give(key: str) -> Any:
            effects.do("given")
            return object()

        with pytest.raises(TypeError, match="no form"):
            give("A")

        assert (effects.done(), effects.records()) == ([], 0)

    @pytest.mark.parametrize("arguments", [{}, {"order_no": "A"}, {"user_id": 1, "order_no": "A", "more": 1}])
    def test_checks_its_arguments(self, arguments: Any) -> None:
        with pytest.raises(TypeError):
            grant(**arguments)


class TestKey:
    def test_may_be_several_arguments(self) -> None:
        calls = [("A", 1), ("A", 2), ("A_1", 1), ("A", 1)]

        for call in calls:
            deduct(*call)

        assert sorted(IdempotencyRecord.objects.values_list("key", flat=True)) == ["A%5F1_1", "A_1", "A_2"]
        assert len(effects.done()) == 3

    def test_is_the_same_by_position_name_and_default(self) -> None:
        assert deduct("A", 1) == deduct(line=1, order_no="A") == deduct("A", line=1, quantity=1) == 1
        assert effects.done() == ["deducted 1"]

    def test_may_be_computed(self) -> None:
        messages = [
            {"id": message[0], "tenant": message[1], "n": n}
            for n, message in enumerate(["1a", "2a", "1b", "1a"])
        ]

        for message in messages:
            consume(message)

        assert effects.done() == ["consumed 1", "consumed 2", "consumed 1"]
        assert set(IdempotencyRecord.objects.values_list("scope", flat=True)) == {"a", "b"}

    def test_may_be_a_number(self) -> None:
        grant(user_id=1, order_no=7)

        assert grant.run(user_id=1, order_no="7").replayed

    @pytest.mark.parametrize(
        ("call", "error"),
        [
            (lambda: grant(user_id=1, order_no=None), KeyMissing),
            (lambda: deduct("A", None), KeyMissing),
            (lambda: consume({"id": None, "tenant": "a"}), KeyMissing),
            (lambda: grant(user_id=None, order_no="A"), KeyMissing),
            (lambda: grant(user_id=1, order_no=""), KeyMissing),
            (lambda: grant(user_id=1, order_no="  "), KeyInvalid),
            (lambda: grant(user_id=1, order_no="k" * 256), KeyInvalid),
        ],
    )
    def test_that_is_none_is_refused(
        self, call: Any, error: type[IdempotencyError], heard: list[Any]
    ) -> None:
        """KEY-08: and told as a refusal."""
        with pytest.raises(error):
            call()

        assert (effects.done(), effects.records()) == ([], 0)
        assert heard == [("refused", None, error.code)]


class TestScope:
    def test_keeps_users_apart(self) -> None:
        """KEY-04"""
        assert [grant.run(user_id=user, order_no="A").replayed for user in (1, 2, 1)] == [False, False, True]


class TestFingerprint:
    def test_is_of_all_other_arguments(self) -> None:
        grant(user_id=1, order_no="A", amount=Decimal(1))

        assert grant.run(user_id=1, order_no="A", campaign="spring", amount=Decimal("1.00")).replayed
        with pytest.raises(KeyReused):
            grant(user_id=1, order_no="A", amount=Decimal(2))
        assert effects.done() == ["granted A"]

    def test_is_of_those_that_are_named(self) -> None:
        deduct("A", 1, quantity=2)

        assert deduct.run("A", 1, quantity=2, note="again").replayed
        with pytest.raises(KeyReused):
            deduct("A", 1, quantity=3)

    def test_may_be_of_nothing(self) -> None:
        consume({"id": "1", "tenant": "a", "n": 1})

        assert consume.run({"id": "1", "tenant": "a", "n": 2}).replayed


@pytest.mark.django_db(transaction=True)
class TestAsyncService:
    async def acall(self) -> Any:
        return [await agrant("A"), await agrant("A"), await agrant.run("A")]

    def test_happens_once(self) -> None:
        first, again, run = async_to_sync(self.acall)()

        assert first == again == run.value == {"count": 1}
        assert run.replayed
        assert effects.done() == ["granted A"]

    def test_that_fails_happens_not_at_all(self) -> None:
        with pytest.raises(ValueError, match="broken"):
            async_to_sync(agrant)("A", campaign="broken")

        assert (effects.done(), effects.records()) == ([], 0)

    def test_keeps_its_face(self) -> None:
        assert inspect.iscoroutinefunction(agrant)
        assert inspect.iscoroutinefunction(agrant.run)
        assert agrant.__doc__ == "Grant a coupon, asynchronously."
