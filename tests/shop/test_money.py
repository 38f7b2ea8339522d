import pytest

from shop.money import decimal_string


@pytest.mark.parametrize(
    ("amount_minor", "currency", "text"),
    [
        (3980, "CNY", "39.80"),
        (100, "CNY", "1.00"),
        (5, "CNY", "0.05"),
        (0, "CNY", "0.00"),
        (100, "JPY", "100"),
        (10**17 + 1, "CNY", "1000000000000000.01"),
    ],
)
def test_an_amount_keeps_its_digits(amount_minor, currency, text):
    assert decimal_string(amount_minor=amount_minor, currency=currency) == text
