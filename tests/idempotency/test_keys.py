import pytest

from idempotency import keys
from idempotency.exceptions import KeyInvalid


class TestParse:
    @pytest.mark.parametrize(
        ("header", "key"),
        [
            ("abc-123", "abc-123"),
            ('"abc-123"', "abc-123"),
            ("  abc-123\t", "abc-123"),
            (' "abc-123" ', "abc-123"),
            ("Abc-1", "Abc-1"),
            ("two words", "two words"),
            ('"one, two"', "one, two"),
            (r'"a \"b\" \\c"', r'a "b" \c'),
            ("a;p=1", "a;p=1"),
            ("%0d%0a", "%0d%0a"),
            ("k" * 255, "k" * 255),
            (f'"{"k" * 255}"', "k" * 255),
            ('"' + r"\"" * 255 + '"', '"' * 255),
        ],
    )
    def test_reads_a_bare_key_and_a_quoted_string(self, header: str, key: str) -> None:
        """KEY-06, KEY-09, KEY-10"""
        assert keys.parse(header) == key

    @pytest.mark.parametrize(
        "header",
        [
            pytest.param("", id="empty"),
            pytest.param("   ", id="blank"),
            pytest.param('""', id="quoted nothing"),
            pytest.param('"  "', id="quoted blanks"),
            pytest.param("k" * 256, id="too long"),
            pytest.param(f'"{"k" * 256}"', id="too long in quotes"),
            pytest.param("tab\tinside", id="tab"),
            pytest.param("nul\x00", id="nul"),
            pytest.param("line\r\nX-Evil: 1", id="line break"),
            pytest.param("caf\xe9", id="latin-1"),
            pytest.param("\U0001f600", id="emoji"),
            pytest.param("\U0001f600".encode().decode("latin-1"), id="emoji as a server gives it"),
            pytest.param("键", id="chinese"),
            pytest.param('"abc', id="unclosed quote"),
            pytest.param('"', id="one quote"),
            pytest.param('"abc"x', id="text after the string"),
            pytest.param(r'"a\b"', id="bad escape"),
            pytest.param('"abc\\"', id="escaped closing quote"),
            pytest.param("abc,def", id="two keys"),
            pytest.param("abc, abc", id="one key sent twice"),
            pytest.param('"abc", "def"', id="two strings"),
        ],
    )
    def test_refuses_what_is_no_key(self, header: str) -> None:
        """KEY-07, KEY-09, KEY-12"""
        with pytest.raises(KeyInvalid):
            keys.parse(header)

    def test_refuses_a_huge_header_at_once(self) -> None:
        """SEC-02"""
        with pytest.raises(KeyInvalid, match="quoted"):
            keys.parse('"' + "\\" * 1_000_000)
        with pytest.raises(KeyInvalid, match="255"):
            keys.parse("k" * 1_000_000)

    def test_does_not_repeat_the_key_in_the_error(self) -> None:
        with pytest.raises(KeyInvalid) as caught:
            keys.parse("<script>\n")

        assert "script" not in str(caught.value)


class TestCheck:
    @pytest.mark.parametrize("key", ["键", "42", "é", "a,b", "a b"])
    def test_lets_text_of_any_language_pass(self, key: str) -> None:
        assert keys.check(key) == key

    @pytest.mark.parametrize("key", ["", " ", "\u3000", "k" * 256, "a\nb", "a\x00", "a\x1b", "\ud800"])
    def test_refuses_what_nobody_can_read(self, key: str) -> None:
        with pytest.raises(KeyInvalid):
            keys.check(key)


class TestJoin:
    def test_reads_as_people_know_it(self) -> None:
        assert keys.join(7, "cart-1", "5f9c") == "7_cart-1_5f9c"

    def test_keeps_different_parts_apart(self) -> None:
        parts = [("a_b", "c"), ("a", "b_c"), ("a%5Fb", "c"), ("a", "b", "c"), ("a%", "5Fb", "c")]

        assert len({keys.join(*each) for each in parts}) == len(parts)
