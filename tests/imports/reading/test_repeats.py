"""Order numbers that come again within one file."""

import pytest

from tests.imports.reading.building import csv, line, number, order, workbook


def test_equal_in_value_is_equal(outcomes):
    content = csv(line(quantity="2"), line(quantity=" 2.0 ", unit_price="19.9"))
    assert outcomes(content) == [(2, "SO-1"), (3, "repeats", 2)]


def test_a_number_and_a_text_are_equal(outcomes):
    content = workbook(order("1001"), order(number("1001.0")))
    assert outcomes(content) == [(2, "1001"), (3, "repeats", 2)]


@pytest.mark.parametrize(
    "other",
    [
        {"customer_phone": "13800000002"},
        {"sku": "TEA-200"},
        {"quantity": "3"},
        {"unit_price": "19.91"},
        {"order_date": "2024-11-02"},
        {"remark": "again"},
    ],
)
def test_one_other_cell_is_a_contradiction(outcomes, other):
    assert outcomes(csv(line(), line("SO-2"), line(**other))) == [
        (2, "order_no", "contradicting"),
        (3, "SO-2"),
        (4, "order_no", "contradicting"),
    ]


def test_numbers_are_told_apart_by_each_character(outcomes):
    assert outcomes(csv(line("so-1"), line("SO-1"), line("SO-01"))) == [
        (2, "so-1"),
        (3, "SO-1"),
        (4, "SO-01"),
    ]


def test_equal_lines_of_a_contradiction_are_rejected_too(read):
    items = read(csv(line(), line(), line(quantity="3"), line()))

    assert [(item.number, item.code) for item in items] == [(n, "contradicting") for n in (2, 3, 4, 5)]
    assert "line 2, 3, 5." in items[2].reason


def test_of_many_lines_some_are_named(read):
    items = read(csv(*(line(quantity=str(count)) for count in range(1, 101))))

    assert {item.code for item in items} == {"contradicting"}
    assert "line 2, 3, 4, 5, 6." in items[-1].reason
    assert "line 3, 4, 5, 6, 7." in items[0].reason


def test_a_rejected_line_makes_its_number_unsure(outcomes):
    assert outcomes(csv(line(), line(quantity="0"))) == [
        (2, "order_no", "contradicting"),
        (3, "quantity", "invalid_quantity"),
    ]


def test_a_ragged_line_makes_its_number_unsure(outcomes):
    assert outcomes(csv(line(), line(remark="a,b"))) == [
        (2, "order_no", "contradicting"),
        (3, "", "cell_without_heading"),
    ]


def test_rejected_lines_keep_their_own_reasons(outcomes):
    assert outcomes(csv(line(quantity="0"), line(quantity="0"))) == [
        (2, "quantity", "invalid_quantity"),
        (3, "quantity", "invalid_quantity"),
    ]
