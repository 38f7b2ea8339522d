"""Messages of any broker, handled once before they are acknowledged, on each database."""

from threading import Event
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from idempotency.consuming import consume_once
from idempotency.exceptions import KeyInvalid, KeyMissing, OperationInProgress
from tests.lab.operations import WITH_RIVALS, Lab, end_connection, lab_db
from tests.lab.races import PATIENCE, Background, race

pytestmark = lab_db


def consume(lab: Lab, message_id: Any = "m-1", *, consumer: str = "coupons", then: Any = None) -> bool:
    def handler() -> None:
        lab.do(f"{consumer} {message_id}")
        if then:
            then()

    return consume_once(consumer, message_id, handler, using=lab.database)


class TestMessage:
    def test_is_handled_once_by_each_consumer(self, lab: Lab) -> None:
        handled = [consume(lab, consumer=name) for name in ("coupons", "coupons", "points", "coupons")]

        assert handled == [True, False, True, False]
        assert lab.done == ["coupons m-1", "points m-1"]

    def test_is_remembered_for_ever(self, lab: Lab) -> None:
        consume(lab)

        record = lab.records.get()
        assert (record.operation, record.key, record.expires_at) == ("messages.coupons", "m-1", None)

    def test_that_fails_is_handled_afresh(self, lab: Lab) -> None:
        def fail() -> None:
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            consume(lab, then=fail)
        assert (lab.done, lab.records.count()) == ([], 0)

        assert consume(lab) is True
        assert lab.done == ["coupons m-1"]

    def test_has_one_number_as_text_and_as_bytes(self, lab: Lab) -> None:
        numbers = ["1700-0", b"1700-0", bytearray(b"1700-0"), "号-1", "号-1".encode()]
        handled = [consume(lab, number) for number in numbers]

        assert handled == [True, False, False, True, False]
        assert list(lab.records.order_by("created_at").values_list("key", flat=True)) == [numbers[0], "号-1"]

    @pytest.mark.parametrize(
        ("number", "error"),
        [
            (None, KeyMissing),
            ("", KeyMissing),
            (b"", KeyMissing),
            ("\n", KeyInvalid),
            (b"\n", KeyInvalid),
            (b"\xff", KeyInvalid),
        ],
    )
    def test_without_a_number_is_not_handled(self, lab: Lab, number: Any, error: type[Exception]) -> None:
        with pytest.raises(error):
            consume(lab, number)
        assert (lab.done, lab.records.count()) == ([], 0)

    def test_is_not_handled_in_a_transaction_that_outlives_it(self, lab: Lab) -> None:
        with lab.atomic(), pytest.raises(ImproperlyConfigured, match="acknowledged"):
            consume(lab)
        assert (lab.done, lab.records.count()) == ([], 0)

    def test_that_many_take_at_once_is_handled_by_one(self, lab: Lab) -> None:
        results = race([lambda: consume(lab)] * 8)

        assert results.count(True) == 1
        assert {type(result) for result in results if result is not True} <= {bool, OperationInProgress}
        assert lab.done == ["coupons m-1"]

    @WITH_RIVALS
    def test_finds_a_connection_again_that_the_server_has_ended(self, lab: Lab) -> None:
        consume(lab, "m-0")
        end_connection(lab)

        assert consume(lab) is True
        assert lab.done == ["coupons m-0", "coupons m-1"]

    @WITH_RIVALS
    def test_that_another_is_handling_is_not_acknowledged(self, lab: Lab) -> None:
        begun, go_on = Event(), Event()

        def then() -> None:
            begun.set()
            go_on.wait(PATIENCE)

        first = Background(lambda: consume(lab, then=then))
        begun.wait(PATIENCE)
        with pytest.raises(OperationInProgress):
            consume(lab)
        go_on.set()

        assert first.result() is True
        assert consume(lab) is False
        assert lab.done == ["coupons m-1"]
