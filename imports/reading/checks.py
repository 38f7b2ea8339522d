"""What a cell must be to be taken, and what it then is."""

import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any, Final

from .cells import Broken, Cell, Number, trimmed
from .formats import shows_amount, shows_date, shows_digits
from .limits import MAX_IDENTIFIER, MAX_PRICE_MINOR, MAX_QUANTITY, MAX_REMARK

SIGNIFICANT: Final = Context(prec=15, rounding=ROUND_HALF_EVEN)
"""Digits that a spreadsheet program keeps of a number, and shows."""

FIRST_DAY: Final = date(1899, 12, 30)
FIRST_DAY_1904: Final = date(1904, 1, 1)
FIRST_SURE_SERIAL: Final = 61
"""1 March 1900. Of the days before, programs differ: some hold 1900 for a leap year."""

_NUMERIC: Final = re.compile(r"-?[0-9]{1,30}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,3})?")
_IDENTIFIER: Final = re.compile(r"[A-Za-z0-9_./-]+")
_SCIENTIFIC: Final = re.compile(r"[0-9]+(\.[0-9]*)?[eE]\+?[0-9]+")
_PHONE: Final = re.compile("[0-9]{11}")
_QUANTITY: Final = re.compile(r"0*([0-9]{1,9})(\.0+)?")
_PRICE: Final = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,2}))?")
_DATE: Final = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffd-\uffff]")


class Unfit(Exception):
    """The cell cannot be taken; ``code`` is one of ``refusals.LINES``."""

    def __init__(self, code: str, params: Mapping[str, Any] | None = None) -> None:
        super().__init__(code, params)
        self.code = code
        self.params = dict(params or {})


def identifier(cell: Cell) -> str:
    """Return an order number or SKU as text, with all its digits and leading zeros.

    :raises Unfit: when it is empty, too long, has other characters, or is what a spreadsheet left of it.
    """
    text = _text(cell)
    if _SCIENTIFIC.fullmatch(text):
        raise Unfit("lost_digits")
    if len(text) > MAX_IDENTIFIER or not _IDENTIFIER.fullmatch(text):
        raise Unfit("invalid_characters", {"limit": MAX_IDENTIFIER})
    return text


def phone(cell: Cell) -> str:
    """Return 11 digits.

    :raises Unfit: when it is anything else.
    """
    text = _text(cell)
    if _PHONE.fullmatch(text):
        return text
    raise Unfit("lost_digits" if _SCIENTIFIC.fullmatch(text) else "invalid_phone")


def quantity(cell: Cell) -> int:
    """Return a whole number from 1; ``2.0`` is 2.

    :raises Unfit: when it is anything else, or too many.
    """
    match = _QUANTITY.fullmatch(_amount(cell, code="invalid_quantity", params={"limit": MAX_QUANTITY}))
    number = int(match[1]) if match else 0
    if not 1 <= number <= MAX_QUANTITY:
        raise Unfit("invalid_quantity", {"limit": MAX_QUANTITY})
    return number


def price_minor(cell: Cell) -> int:
    """Return a price in minor units: ``19.9`` and a cell 19.899999999999999 are 1990.

    :raises Unfit: when it is negative, too high, has more than 2 decimals, or any marks.
    """
    text = _amount(cell, code="invalid_price")
    match = _PRICE.fullmatch(text)
    if match is None:
        raise Unfit("decimal_comma" if "," in text else "invalid_price")
    minor = int(match[1] + (match[2] or "").ljust(2, "0"))
    if minor > MAX_PRICE_MINOR:
        raise Unfit("invalid_price")
    return minor


def day(cell: Cell) -> date:
    """Return a day: ``YYYY-MM-DD``, or a date cell, whose time of day is left out.

    :raises Unfit: when it is anything else, such as 01/02/2024 or a number that is not shown as a date.
    """
    if isinstance(cell, Number):
        return _day_of_serial(cell)
    text = _text(cell)
    if not _DATE.fullmatch(text):
        raise Unfit("invalid_date")
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise Unfit("invalid_date") from None


def remark(cell: Cell) -> str:
    """Return a text as it is typed, with its blanks, line breaks and signs; one of blanks alone is empty.

    :raises Unfit: when it is too long, or holds what no text holds.
    """
    text = cell if isinstance(cell, str) else _said(cell)
    if len(text) > MAX_REMARK:
        raise Unfit("text_too_long", {"limit": MAX_REMARK})
    if _FORBIDDEN.search(text):
        raise Unfit("control_character")
    return text if trimmed(text) else ""


CHECKS: Final[Mapping[str, Callable[[Cell], Any]]] = {
    "order_no": identifier,
    "customer_phone": phone,
    "sku": identifier,
    "quantity": quantity,
    "unit_price": price_minor,
    "order_date": day,
    "remark": remark,
}
"""By column, in the order of the template: the first that fails is named."""


def _text(cell: Cell) -> str:
    """Return a cell that is needed as text without outer blanks."""
    text = trimmed(cell) if isinstance(cell, str) else _digits(cell)
    if not text:
        raise Unfit("missing_value")
    return text


def _digits(cell: Number | Broken) -> str:
    """Return the digits of a whole number, if the cell has them all and shows them."""
    number = _decimal(cell, code="invalid_characters", params={"limit": MAX_IDENTIFIER})
    if number != number.to_integral_value() or number < 0:
        raise Unfit("invalid_characters", {"limit": MAX_IDENTIFIER})
    if number.adjusted() >= SIGNIFICANT.prec:
        raise Unfit("lost_digits")
    digits = str(int(number))
    if isinstance(cell, Number) and not shows_digits(cell.shown, count=len(digits)):
        raise Unfit("shown_differently")
    return digits


def _amount(cell: Cell, *, code: str, params: Mapping[str, Any] | None = None) -> str:
    """Return a cell that is to be a number as plain text."""
    if isinstance(cell, str):
        return _text(cell)
    number = _decimal(cell, code=code, params=params)
    if isinstance(cell, Number) and not shows_amount(cell.shown):
        raise Unfit("shown_differently")
    return _plain(number, code=code, params=params)


def _decimal(cell: Number | Broken, *, code: str, params: Mapping[str, Any] | None = None) -> Decimal:
    if isinstance(cell, Broken):
        raise Unfit(cell.code)
    if not _NUMERIC.fullmatch(cell.text):
        raise Unfit(code, params)
    return Decimal(cell.text)


def _plain(number: Decimal, *, code: str, params: Mapping[str, Any] | None = None) -> str:
    """Return the number as a spreadsheet program shows it: 15 digits, no exponent, no zeros behind."""
    rounded = SIGNIFICANT.plus(number).normalize()
    if abs(rounded.adjusted()) > SIGNIFICANT.prec:
        raise Unfit(code, params)
    return f"{rounded:f}"


def _day_of_serial(cell: Number) -> date:
    if not shows_date(cell.shown):
        raise Unfit("invalid_date")
    serial = _decimal(cell, code="invalid_date")
    first = FIRST_DAY_1904 if cell.since_1904 else FIRST_DAY
    if serial < FIRST_SURE_SERIAL:
        raise Unfit("invalid_date")
    try:
        return first + timedelta(days=int(serial))
    except OverflowError:
        raise Unfit("invalid_date") from None


def _said(cell: Number | Broken) -> str:
    """Return what a remark that is a number says."""
    if isinstance(cell, Number) and shows_date(cell.shown):
        return _day_of_serial(cell).isoformat()
    return _plain(_decimal(cell, code="control_character"), code="lost_digits")
