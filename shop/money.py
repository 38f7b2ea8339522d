"""Money is a whole number of minor units inside, a decimal string outside, and never a float."""

import re
from decimal import Decimal

MINOR_DIGITS = {"CNY": 2, "EUR": 2, "GBP": 2, "HKD": 2, "JPY": 0, "KRW": 0, "KWD": 3, "USD": 2}
"""ISO 4217: how many decimals the shop's currencies have."""


def decimal_string(*, amount_minor: int, currency: str) -> str:
    """Spell an amount for the outside: 3980 CNY is ``"39.80"``, 3980 JPY is ``"3980"``."""
    return f"{Decimal(amount_minor).scaleb(-MINOR_DIGITS[currency]):f}"


def minor_units(*, amount: str, currency: str) -> int:
    """Read an amount from the outside: ``"39.80"`` and ``"39.8"`` CNY are 3980, ``"3980"`` JPY is 3980.

    :raises ValueError: when it is no plain decimal number, or has more decimals than the currency.
    """
    digits = MINOR_DIGITS.get(currency)
    match = re.fullmatch(r"([0-9]{1,12})(?:\.([0-9]{1,4}))?", amount)
    if digits is None or match is None or len(match[2] or "") > digits:
        raise ValueError(f"{amount!r} is no amount of {currency}")
    return int(match[1] + (match[2] or "").ljust(digits, "0"))
