"""Number formats of workbooks: what a cell shows of the number that it holds."""

import re
from typing import Final

GENERAL: Final = "General"

BUILT_IN: Final = {
    0: GENERAL,
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    9: "0%",
    10: "0.00%",
    11: "0.00E+00",
    **dict.fromkeys((14, 15, 16, 17, 22), "yyyy-mm-dd"),
    **dict.fromkeys((18, 19, 20, 21, 45, 46, 47), "h:mm"),
    **dict.fromkeys((27, 28, 29, 30, 31, 36, 50, 51, 52, 53, 54, 57, 58), "yyyy-mm-dd"),
    **dict.fromkeys((32, 33, 34, 35, 55, 56), "h:mm"),
    37: "#,##0",
    38: "#,##0",
    39: "#,##0.00",
    40: "#,##0.00",
    48: "##0.0E+0",
    49: "@",
}
"""Formats that workbooks name by number alone, among them those of Chinese dates."""

UNKNOWN: Final = "unknown"
"""A number that names no format."""

_LITERALS: Final = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]|[_*].', re.DOTALL)
_DIGITS: Final = re.compile(r"[#?,]*(0[0,]*)?(\.[0#?]*)?(E[+-]?[0#]+)?")


def shows_date(shown: str) -> bool:
    """Whether the format shows a day; one that shows a time alone does not."""
    return not is_plain(shown) and bool(re.search("[yd]", _LITERALS.sub("", shown).lower()))


def shows_amount(shown: str) -> bool:
    """Whether the format shows the number itself, whatever currency marks stand beside it."""
    return is_plain(shown) or not re.search("[ydhms%]", _LITERALS.sub("", shown).lower())


def shows_digits(shown: str, *, count: int) -> bool:
    """Whether a whole number of ``count`` digits is seen as these digits: not ``000123`` for 123."""
    if is_plain(shown):
        return True
    match = _DIGITS.fullmatch(shown.partition(";")[0])
    return match is not None and (match[1] or "").count("0") <= count


def is_plain(shown: str) -> bool:
    """Whether the cell shows its number without a format of its own."""
    return shown in (GENERAL, "@")
