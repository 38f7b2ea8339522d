"""Each of the example files over the API, to the count."""

from collections import Counter

import pytest

from orders.models import Order, OrderLine
from stock.models import StockItem, StockMovement
from tests.imports.files import STOCK, counts, rows, upload
from tests.shopping import shopper

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("config.urls"),
    pytest.mark.usefixtures("_shop"),
]

ALONE = {
    "amount_formats.csv": {"created": 1, "rejected": 5},
    "base_orders.csv": {"created": 5},
    "base_orders.xlsx": {"created": 5},
    "cr_only.csv": {"created": 5},
    "crlf.csv": {"created": 5},
    "dates.xlsx": {"created": 3, "rejected": 3},
    "duplicate_rows_exact.csv": {"created": 3, "skipped": 2},
    "empty_trailing_rows.csv": {"created": 5},
    "formula_injection.csv": {"created": 5},
    "formulas.xlsx": {"created": 1, "rejected": 3},
    "gbk_chinese_headers.csv": {"created": 3},
    "header_variants.csv": {"created": 2},
    "leading_zeros.csv": {"created": 3},
    "leading_zeros.xlsx": {"created": 1, "rejected": 1},
    "long_numbers_as_numbers.xlsx": {"created": 2, "rejected": 2},
    "merged_order_no.xlsx": {"created": 1, "rejected": 3},
    "mixed_valid_invalid.csv": {"created": 3, "rejected": 3},
    "no_final_newline.csv": {"created": 5},
    "numbers_as_floats.xlsx": {"created": 2},
    "quantities_odd.csv": {"created": 2, "rejected": 9},
    "quotes_newlines.csv": {"created": 3},
    "ragged_rows.csv": {"created": 2, "rejected": 2},
    "same_order_no_different_amount.csv": {"created": 1, "rejected": 2},
    "scientific_notation.csv": {"created": 1, "rejected": 2},
    "stray_cell_last_row.xlsx": {"created": 5},
    "utf8_bom.csv": {"created": 5},
    "utf8_chinese_headers.csv": {"created": 3},
}

REFUSED = [
    "csv_named.xlsx",
    "duplicate_header.csv",
    "header_only.csv",
    "html_table_named.xls",
    "merged_header.xlsx",
    "missing_required_column.csv",
    "xlsx_named.csv",
    "zero_bytes.csv",
]


@pytest.mark.parametrize("name", ALONE)
def test_a_file_alone(name):
    answer = upload(shopper(), name)

    assert answer.status_code == 201
    data = answer.json()["data"]
    assert (data["status"], counts(data)) == ("done", ALONE[name])
    assert_books_balance(created=ALONE[name]["created"])


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_is_refused_as_a_whole(name):
    answer = upload(shopper(), name)

    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert_books_balance(created=0)
    assert upload(shopper(), "base_orders.csv").status_code == 201


class TestAfterAnother:
    def test_a_renamed_copy_is_the_same_file(self):
        first = upload(shopper(), "base_orders.csv").json()["data"]
        answer = upload(shopper(), "base_orders_renamed_copy.csv")

        assert answer.status_code == 200
        assert answer.json()["data"] == {**first, "isDuplicate": True}
        assert_books_balance(created=5)

    def test_the_same_bytes_in_another_mode_are_skipped_by_number(self):
        upload(shopper(), "base_orders.csv")
        answer = upload(shopper(), "base_orders.csv", mode="incremental")

        assert answer.status_code == 201
        assert counts(answer.json()["data"]) == {"skipped": 5}
        assert_books_balance(created=5)

    @pytest.mark.parametrize("mode", ["batch", "incremental"])
    @pytest.mark.parametrize(
        ("first", "second"),
        [("base_orders.xlsx", "base_orders_resaved.xlsx"), ("base_orders.csv", "utf8_bom.csv")],
    )
    def test_the_same_orders_in_other_bytes_are_skipped(self, first, second, mode):
        upload(shopper(), first)
        answer = upload(shopper(), second, mode=mode)

        assert counts(answer.json()["data"]) == {"skipped": 5}
        assert_books_balance(created=5)

    def test_a_corrected_file_brings_the_rest(self):
        upload(shopper(), "mixed_valid_invalid.csv")
        assert_books_balance(created=3)
        answer = upload(shopper(), "mixed_corrected.csv", mode="incremental")

        assert counts(answer.json()["data"]) == {"created": 3, "skipped": 3}
        assert_books_balance(created=6)

    def test_an_overlapping_file_brings_what_is_new(self):
        assert counts(upload(shopper(), "incremental_day1.csv", mode="incremental").json()["data"]) == {
            "created": 6
        }
        answer = upload(shopper(), "incremental_day2_overlap.csv", mode="incremental")

        assert counts(answer.json()["data"]) == {"created": 3, "skipped": 1, "rejected": 1}
        assert dict(rows("client_order_no", "lines__quantity"))["SO-2024-0806"] == 1
        assert_books_balance(created=9)

    def test_an_update_corrects_what_is_known(self):
        upload(shopper(), "incremental_day1.csv", mode="incremental")
        answer = upload(shopper(), "update_mode.csv", mode="update")

        assert counts(answer.json()["data"]) == {"updated": 1, "unchanged": 1, "rejected": 1}
        assert dict(rows("client_order_no", "lines__quantity"))["SO-2024-0801"] == 5
        assert_books_balance(created=6)


def assert_books_balance(*, created: int) -> None:
    """So many orders, and the stock has moved once for each of their present lines."""
    assert (Order.objects.count(), OrderLine.objects.count()) == (created, created)
    sold: Counter[str] = Counter()
    for sku, quantity in OrderLine.objects.values_list("sku", "quantity"):
        sold[sku] += quantity
    assert {
        item.sku: STOCK - item.on_hand for item in StockItem.objects.all() if item.on_hand != STOCK
    } == sold
    net: Counter[str] = Counter()
    for movement in StockMovement.objects.all():
        net[movement.sku] += movement.quantity if movement.kind == "DEDUCTED" else -movement.quantity
    assert net == sold
