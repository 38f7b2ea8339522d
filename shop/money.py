"""Money is a whole number of minor units inside, a decimal string outside, and never a float."""

from decimal import Decimal

MINOR_DIGITS = {"CNY": 2, "EUR": 2, "GBP": 2, "HKD": 2, "JPY": 0, "KRW": 0, "USD": 2}
"""ISO 4217: how many decimals the shop's currencies have."""


def decimal_string(*, amount_minor: int, currency: str) -> str:
    """Spell an amount for the outside: 3980 CNY is ``"39.80"``, 3980 JPY is ``"3980"``."""
    return f"{Decimal(amount_minor).scaleb(-MINOR_DIGITS[currency]):f}"
