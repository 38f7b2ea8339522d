"""What a file does to orders and stock that are there already."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from imports.models import AppliedUpdate, Finding, Import
from imports.running import run_import
from orders.models import Article, Order, Status
from orders.services import cancel_order
from payments.models import Payment
from stock.models import StockItem, StockMovement
from tests.imports.files import counts, csv, line, numbered, rows, sell_all, upload
from tests.shopping import on_hand, order, sell, shopper

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls("config.urls")]


@pytest.fixture(autouse=True)
def _stock(db):
    sell_all(stock=100)


def sent(content, mode="batch"):
    answer = upload(shopper(), content, mode=mode)
    assert answer.status_code == 201, answer.json()
    return counts(answer.json()["data"])


def findings():
    source = Import.objects.latest("created_at")
    return list(source.findings.order_by("line").values_list("line", "column", "code"))


class TestNewOrders:
    @pytest.mark.parametrize("mode", ["batch", "incremental"])
    @pytest.mark.parametrize(
        ("column", "value"),
        [
            ("customer_phone", "13800000002"),
            ("sku", "TEA-200"),
            ("quantity", 2),
            ("unit_price", "19.91"),
            ("order_date", "2024-11-06"),
            ("remark", "other"),
        ],
    )
    def test_a_known_one_with_other_content_is_a_conflict(self, mode, column, value):
        sent(csv(line("SO-1")))
        before = rows("status", "amount_minor", "remark", "lines__sku", "lines__quantity")

        assert sent(csv(line("SO-1", **{column: value})), mode) == {"rejected": 1}

        assert findings() == [(2, column, "conflict")]
        assert rows("status", "amount_minor", "remark", "lines__sku", "lines__quantity") == before
        assert on_hand() == 99

    def test_a_known_one_of_several_articles_is_a_conflict(self):
        order(shopper(), ("TEA-100", 1), ("TEA-200", 1), client_order_no="SO-1")
        assert sent(csv(line("SO-1"))) == {"rejected": 1}
        assert findings() == [(2, "order_no", "conflict")]

    def test_an_article_that_is_not_sold_is_named(self):
        sell(sku="SAKE", currency="JPY")
        assert sent(csv(line("SO-1", sku="NONE-1"), line("SO-2"), line("SO-3", sku="SAKE"))) == {
            "created": 1,
            "rejected": 2,
        }
        assert findings() == [(2, "sku", "unknown_sku"), (4, "sku", "currency_mismatch")]

    def test_a_known_one_is_skipped_though_its_article_is_gone(self):
        sent(csv(line("SO-1")))
        Article.objects.filter(sku="TEA-100").delete()
        assert sent(csv(line("SO-1"), line("SO-2", sku="TEA-200"))) == {"created": 1, "skipped": 1}

    def test_repeated_lines_are_reported(self):
        assert sent("duplicate_rows_exact.csv") == {"created": 3, "skipped": 2}
        repeated = Finding.objects.filter(kind="repeated").order_by("line")
        assert [(each.line, each.reason) for each in repeated] == [
            (4, "It repeats line 2 and was skipped."),
            (5, "It repeats line 2 and was skipped."),
        ]

    def test_stock_that_runs_short_serves_the_first_lines(self):
        lines = [line(f"SO-{number}", quantity=quantity) for number, quantity in enumerate([60, 50, 40, 1])]
        assert sent(csv(*lines, line("SO-9", sku="TEA-200", quantity=100))) == {"created": 3, "rejected": 2}

        assert findings() == [(3, "quantity", "insufficient_stock"), (5, "quantity", "insufficient_stock")]
        assert (on_hand(), on_hand("TEA-200")) == (0, 0)
        assert StockMovement.objects.count() == 3

    def test_an_article_without_stock_is_refused(self):
        StockItem.objects.filter(sku="CUP-010").delete()
        assert sent(csv(line("SO-1", sku="CUP-010"), line("SO-2"))) == {"created": 1, "rejected": 1}

    def test_a_chunk_is_as_many_statements_for_any_number_of_lines(self, settings):
        settings.IMPORTS_AT_ONCE = 0
        upload(shopper(), numbered(90))

        with CaptureQueriesContext(connection) as captured:
            run_import(import_id=str(Import.objects.get().pk))

        statements = [query["sql"] for query in captured.captured_queries]
        assert sum("stock_stockitem" in statement for statement in statements) == 1
        assert len(statements) < 45
        assert on_hand() == 10

    def test_a_cancelled_order_gives_its_stock_back_once(self):
        sent(csv(line("SO-1", quantity=3)))
        made = Order.objects.get()
        assert [cancel_order(order=made, now=timezone.now()) for _ in range(2)] == [True, False]
        assert on_hand() == 100


class TestCorrections:
    def test_again_change_nothing(self):
        sent("incremental_day1.csv", "incremental")
        assert sent("update_mode.csv", "update") == {"updated": 1, "unchanged": 1, "rejected": 1}
        assert findings() == [(4, "order_no", "unknown_order")]
        assert on_hand() == 90
        again = upload(shopper(), "update_mode.csv", mode="update")

        assert (again.status_code, again.json()["data"]["isDuplicate"]) == (200, True)
        same_in_other_bytes = csv(
            line("SO-2024-0801", quantity=5, remark="quantity corrected"),
            line("SO-2024-0802", customer_phone="13800000002", remark="day one"),
        )
        assert sent(same_in_other_bytes, "update") == {"unchanged": 2}
        assert on_hand() == 90

    def test_of_a_shipped_order_are_refused(self):
        sent("incremental_day1.csv", "incremental")
        Order.objects.filter(client_order_no="SO-2024-0801").update(status=Status.SHIPPED)

        assert sent("update_mode.csv", "update") == {"unchanged": 1, "rejected": 2}
        assert findings() == [(2, "order_no", "invalid_transition"), (4, "order_no", "unknown_order")]
        assert on_hand() == 94

    def test_of_an_order_that_is_being_paid_are_refused(self):
        sent(csv(line("SO-1")))
        made = Order.objects.get()
        Payment.objects.create(
            order=made, provider="alipay", amount_minor=1990, currency="CNY", created_at=timezone.now()
        )

        assert sent(csv(line("SO-1", quantity=2)), "update") == {"rejected": 1}
        assert findings() == [(2, "order_no", "operation_in_progress")]
        made.refresh_from_db()
        assert (made.amount_minor, on_hand()) == (1990, 99)

    def test_set_every_cell(self):
        sent(csv(line("SO-1")))
        cells = {
            "customer_phone": "13900000009",
            "sku": "TEA-200",
            "quantity": 4,
            "unit_price": "1.25",
            "order_date": "2024-12-01",
            "remark": "new",
        }
        assert sent(csv(line("SO-1", **cells)), "update") == {"updated": 1}

        made = Order.objects.get()
        assert (made.customer_phone, f"{made.order_date}", made.remark) == (
            "13900000009",
            "2024-12-01",
            "new",
        )
        assert made.amount_minor == 500
        assert list(made.lines.values_list("sku", "quantity", "price_minor")) == [("TEA-200", 4, 125)]
        assert (on_hand(), on_hand("TEA-200")) == (100, 96)

    def test_that_move_no_stock_write_no_ledger(self):
        sent(csv(line("SO-1")))
        before = list(StockMovement.objects.values_list("pk", flat=True))
        assert sent(csv(line("SO-1", remark="new")), "update") == {"updated": 1}
        assert list(StockMovement.objects.values_list("pk", flat=True)) == before

    def test_back_and_forth_leave_a_ledger_that_a_cancellation_settles(self):
        sent(csv(line("SO-1", quantity=1)))
        stale = Order.objects.get()
        for quantity, sku in [(5, "TEA-100"), (2, "TEA-200"), (1, "TEA-100")]:
            assert sent(csv(line("SO-1", quantity=quantity, sku=sku)), "update") == {"updated": 1}
        assert (on_hand(), on_hand("TEA-200")) == (99, 100)

        cancel_order(order=stale, now=timezone.now())  # as a view that has read it before the corrections

        assert (on_hand(), on_hand("TEA-200")) == (100, 100)
        taken = StockMovement.objects.filter(kind="DEDUCTED").count()
        assert taken == StockMovement.objects.filter(kind="RESTORED").count() == 4

    def test_that_the_stock_cannot_follow_are_refused_alone(self):
        sent(csv(line("SO-1"), line("SO-2"), line("SO-3")))
        changed = csv(line("SO-1", quantity=2), line("SO-2", quantity=200), line("SO-3", quantity=3))

        assert sent(changed, "update") == {"updated": 2, "rejected": 1}
        assert findings() == [(3, "quantity", "insufficient_stock")]
        assert dict(rows("client_order_no", "lines__quantity")) == {"SO-1": 2, "SO-2": 1, "SO-3": 3}
        assert on_hand() == 100 - 6

    def test_are_applied_once_for_each_content_whatever_came_between(self):
        sent(csv(line("SO-1")))
        first = csv(line("SO-1", quantity=2))
        sent(first, "update")
        Import.objects.filter(mode="update").update(status="cancelled", dedup_key=None)
        sent(csv(line("SO-1", quantity=7)), "update")

        assert sent(first, "update") == {"unchanged": 1}
        assert (dict(rows("client_order_no", "lines__quantity")), on_hand()) == ({"SO-1": 7}, 93)
        assert AppliedUpdate.objects.count() == 2
