import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from idempotency.values import Operation, Outcome


def operation(**parts: Any) -> Operation:
    return Operation(**{"name": "lab.do", "scope": "user:1", "key": "abc", **parts})


class TestOperation:
    def test_has_one_id_for_ever(self) -> None:
        """Records of an older version are found by it."""
        assert operation().id == uuid.UUID("cfae2cb0-4f6b-52f6-8d86-e8da88bfd806")

    def test_has_an_id_that_every_database_takes(self) -> None:
        ids = [operation(key=str(number)).id for number in range(50)]

        assert {(each.version, each.variant) for each in ids} == {(5, uuid.RFC_4122)}

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ({"key": "abc"}, {"key": "ABC"}),
            ({"key": "abc"}, {"key": "abc "}),
            ({"key": "k" * 300 + "1"}, {"key": "k" * 300 + "2"}),
            ({"scope": "user:1", "key": "1"}, {"scope": "user:11", "key": ""}),
            ({"name": "a", "scope": "bc"}, {"name": "ab", "scope": "c"}),
            ({"scope": "user:1"}, {"scope": "user:2"}),
            ({"name": "lab.do"}, {"name": "lab.undo"}),
        ],
    )
    def test_is_another_with_another_name_scope_or_key(self, one: Any, other: Any) -> None:
        """KEY-03, KEY-04, KEY-09, KEY-10"""
        assert operation(**one).id != operation(**other).id

    def test_is_the_same_with_another_fingerprint_or_label(self) -> None:
        assert operation(fingerprint=b"1", label="one").id == operation(fingerprint=b"2", label="two").id

    @pytest.mark.parametrize(
        ("key", "shown"), [("a", "…"), ("ab", "a…"), ("secret-key-of-mine", "secret-k…"), ("短键值", "短…")]
    )
    def test_shows_the_start_of_its_key(self, key: str, shown: str) -> None:
        assert str(operation(key=key)) == f"lab.do {shown} ({operation(key=key).id})"


VALUES = [
    None,
    True,
    0,
    10**30,
    0.1,
    "订单\x00",
    Decimal("39.80"),
    Decimal("1E+3"),
    date(2026, 11, 30),
    datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC),
    datetime(2026, 11, 30, 12, tzinfo=timezone(timedelta(hours=8))),
    datetime(2026, 11, 30, 12),  # noqa: DTZ001  naive is kept naive
    time(23, 59, 59, 999999),
    timedelta(days=-1, microseconds=1),
    timedelta(days=999999999),
    uuid.UUID(int=1),
    [],
    {},
    {"lines": [{"price": Decimal("0.10"), "on": date(2026, 1, 1)}], "none": None},
    {"__type__": "decimal", "value": "1"},
    {"__type__": {"__type__": Decimal(1)}},
]


class TestOutcome:
    @pytest.mark.parametrize("value", VALUES, ids=repr)
    def test_gives_a_value_back_exactly(self, value: Any) -> None:
        again = Outcome.of(value).value

        assert again == value
        assert type(again) is type(value)
        assert repr(again) == repr(value)

    def test_gives_a_tuple_back_as_a_list(self) -> None:
        assert Outcome.of((1, (2,))).value == [1, [2]]

    @pytest.mark.parametrize("value", [object(), {1}, b"bytes", {1: "a"}, {"a": object()}, 1j])
    def test_refuses_what_has_no_form(self, value: Any) -> None:
        with pytest.raises(TypeError, match="no form"):
            Outcome.of(value)

    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_refuses_what_is_no_number(self, value: float) -> None:
        with pytest.raises(ValueError, match="JSON"):
            Outcome.of(value)
