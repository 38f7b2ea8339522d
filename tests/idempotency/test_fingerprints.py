import json
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any

import pytest
from django.core.files.base import File
from hypothesis import given
from hypothesis import strategies as st

from idempotency import fingerprints

SAME = [
    (b'{"a": 1, "b": 2}', b'{"b":2,"a":1}'),
    (b'{"a": 1}', b'{ "a" :\n1 }'),
    (b"1", b"1.0"),
    (b"100", b"1e2"),
    (b"0", b"-0.0"),
    (b"0.10", b"0.1"),
    ('{"名": "茶"}'.encode(), b'{"\\u540d": "\\u8336"}'),
    (b'{"a": {"x": [1, {"y": 2.50}]}}', b'{"a":{"x":[1.0,{"y":2.5}]}}'),
]
DIFFERENT = [
    (b'{"a": null}', b"{}"),
    (b"[1, 2]", b"[2, 1]"),
    (b"1", b'"1"'),
    (b"1", b"true"),
    (b"0", b"false"),
    (b"null", b'"null"'),
    (b"1", b"-1"),
    (b"9007199254740993", b"9007199254740992"),
    (b"0.1", b"0.10000000000000000001"),
    (b"1e400", b"1e401"),
    (b'{"a": "b"}', b'["a", "b"]'),
    (b'["ab", "c"]', b'["a", "bc"]'),
    (b"[[1], 2]", b"[1, [2]]"),
    (b'{"a": {}}', b'{"a": []}'),
    (b'""', b"null"),
    (b'"\xc3\xa9"', b'"e\xcc\x81"'),
]


class TestJSON:
    """KEY-15"""

    @pytest.mark.parametrize(("one", "other"), SAME)
    def test_is_taken_by_value(self, one: bytes, other: bytes) -> None:
        assert fingerprints.of_json(one) == fingerprints.of_json(other)

    @pytest.mark.parametrize(("one", "other"), DIFFERENT)
    def test_differs_where_the_value_does(self, one: bytes, other: bytes) -> None:
        assert fingerprints.of_json(one) != fingerprints.of_json(other)

    @pytest.mark.parametrize(
        "text",
        [
            pytest.param(b'{"a": ', id="cut"),
            pytest.param(b"", id="empty"),
            pytest.param(b"NaN", id="nan"),
            pytest.param(b'{"a": -Infinity}', id="infinity"),
            pytest.param(b"\xff\xfe", id="not utf-8"),
            pytest.param(b"[" * 100_000, id="deep"),
            pytest.param(b"[" * 100_000 + b"]" * 100_000, id="deep and well-formed"),
            pytest.param(b"9" * 5_000, id="digits"),
            pytest.param(b"1e99999999999999999999", id="exponent"),
        ],
    )
    def test_that_is_none_is_taken_by_its_bytes(self, text: bytes) -> None:
        """HTTP-03: the view gives its own answer to it."""
        assert fingerprints.of_json(text) == fingerprints.of_bytes([text])

    def test_in_an_unknown_charset_is_taken_by_its_bytes(self) -> None:
        assert fingerprints.of_json(b"1", charset="klingon") == fingerprints.of_bytes([b"1"])

    def test_in_another_charset_has_the_same_value(self) -> None:
        text = '{"a": "茶"}'

        assert fingerprints.of_json(text.encode("gb18030"), charset="gb18030") == fingerprints.of_json(
            text.encode()
        )

    def test_is_small_whatever_the_exponent(self) -> None:
        assert len(fingerprints.of_json(b"1e999999")) == fingerprints.SIZE

    @given(
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.text()
            | st.decimals(allow_nan=False, allow_infinity=False),
            lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
            max_leaves=20,
        )
    )
    def test_is_that_of_its_value(self, value: Any) -> None:
        spelled = spell(value).encode("utf-8", "surrogatepass")

        assert fingerprints.of_value(json.loads(spelled, parse_float=Decimal)) == fingerprints.of_value(value)


def spell(value: Any) -> str:
    """Spell JSON with the members in reverse, wide, and decimals as numbers."""
    if isinstance(value, Decimal):
        return f"{value:e}" if value.is_finite() else "null"
    if isinstance(value, dict):
        return f"{{ {' , '.join(f'{json.dumps(k)} : {spell(v)}' for k, v in reversed(value.items()))} }}"
    if isinstance(value, list):
        return f"[ {' , '.join(map(spell, value))} ]"
    return json.dumps(value)


class TestIgnoredFields:
    def test_do_not_count(self) -> None:
        one = {"sku": "TEA", "sent_at": 1, "client": {"sent_at": 1, "id": 7}}
        other = {"sku": "TEA", "sent_at": 2, "client": {"sent_at": 2, "id": 7}}

        ignored = ("sent_at", "client.sent_at")

        assert fingerprints.of_value(one, ignored=ignored) == fingerprints.of_value(other, ignored=ignored)
        assert fingerprints.of_value(one, ignored=ignored[:1]) != fingerprints.of_value(
            other, ignored=ignored[:1]
        )

    def test_may_be_there_or_not(self) -> None:
        assert fingerprints.of_value({"a": 1, "b": 2}, ignored=("b",)) == fingerprints.of_value({"a": 1})

    def test_count_elsewhere(self) -> None:
        one, other = {"lines": {"sent_at": 1}}, {"lines": {"sent_at": 2}}

        assert fingerprints.of_value(one, ignored=("sent_at",)) != fingerprints.of_value(
            other, ignored=("sent_at",)
        )

    def test_lead_into_lists(self) -> None:
        one, other = {"lines": [{"nonce": 1}]}, {"lines": [{"nonce": 2}]}

        assert fingerprints.of_value(one, ignored=("lines.nonce",)) == fingerprints.of_value(
            other, ignored=("lines.nonce",)
        )


class TestValue:
    def test_knows_times_and_their_zones(self) -> None:
        values = [date(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01", Decimal("2026")]

        assert len({fingerprints.of_value(value) for value in values}) == len(values)

    @pytest.mark.parametrize(
        "value", [object(), {1, 2}, b"bytes", float("nan"), Decimal("Infinity"), {1: "a"}]
    )
    def test_refuses_what_json_has_not(self, value: Any) -> None:
        with pytest.raises(TypeError):
            fingerprints.of_value(value)


class TestFields:
    """KEY-17"""

    def of(self, fields: Any, files: Any = None, **options: Any) -> bytes:
        return fingerprints.of_fields(fields, files or {}, **options)

    def test_count_in_any_order(self) -> None:
        assert self.of({"a": ["1"], "b": ["2"]}) == self.of({"b": ["2"], "a": ["1"]})

    def test_count_each_value_in_its_order(self) -> None:
        assert self.of({"a": ["1", "2"]}) != self.of({"a": ["2", "1"]})

    def test_count_files_by_their_content(self) -> None:
        one, same, other = (
            File(BytesIO(content), name) for content, name in [(b"1", "a"), (b"1", "b"), (b"2", "a")]
        )

        assert self.of({}, {"file": [one]}) == self.of({}, {"file": [same]})
        assert self.of({}, {"file": [one]}) != self.of({}, {"file": [other]})
        assert self.of({}, {"file": [one]}) != self.of({}, {"other": [one]})

    def test_leave_a_file_at_its_start(self) -> None:
        file = File(BytesIO(b"content"))

        self.of({}, {"file": [file]})

        assert file.read() == b"content"

    def test_never_take_a_field_for_a_file(self) -> None:
        content = fingerprints.of_bytes([b"1"]).hex()

        assert self.of({"a": [content]}) != self.of({}, {"a": [File(BytesIO(b"1"))]})

    def test_leave_ignored_ones_out(self) -> None:
        assert self.of({"a": ["1"], "nonce": ["1"]}, ignored=("nonce",)) == self.of({"a": ["1"]})


class TestKinds:
    def test_never_meet(self) -> None:
        text = b'"1"'

        assert fingerprints.of_json(text) != fingerprints.of_bytes([text])

    def test_are_of_one_size(self) -> None:
        digests = [fingerprints.of_bytes([]), fingerprints.of_json(b"{}"), fingerprints.combine(b"a", b"b")]

        assert {len(digest) for digest in digests} == {fingerprints.SIZE}
