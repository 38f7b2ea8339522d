"""What the shop writes for spreadsheet programs."""

import csv
import io
import re
import zipfile

import pytest

from imports import report
from tests.imports.files import csv as file_of
from tests.imports.files import line, upload
from tests.shopping import shopper

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("config.urls"),
    pytest.mark.usefixtures("_shop"),
]


def errors(client, answer):
    answer = client.get(f"/api/imports/{answer.json()['data']['importId']}/errors.csv")
    content = b"".join(answer.streaming_content)
    assert content.startswith(b"\xef\xbb\xbf")
    return answer, list(csv.reader(io.StringIO(content.decode("utf-8-sig"))))


class TestErrors:
    def test_name_line_column_and_reason(self):
        client = shopper()
        answer, rows = errors(client, upload(client, "mixed_valid_invalid.csv"))

        assert answer["Content-Type"] == "text/csv; charset=utf-8"
        assert answer["Content-Disposition"].startswith('attachment; filename="errors-')
        assert rows[0] == ["line", "column", "reason", "order number", "code"]
        assert len(rows) == 4
        assert [row[1] for row in rows[1:]] == ["customer_phone", "sku", "order_no"]
        assert all(row[0].isdecimal() and row[2] for row in rows[1:])

    def test_are_in_the_readers_language(self):
        client = shopper()
        uploaded = upload(client, "mixed_valid_invalid.csv")
        client.defaults["HTTP_ACCEPT_LANGUAGE"] = "zh-CN"
        _answer, rows = errors(client, uploaded)

        assert rows[0][:4] == ["行", "列", "原因", "订单号"]
        assert all(any("\u4e00" <= character <= "\u9fff" for character in row[2]) for row in rows[1:])

    def test_leave_out_lines_that_were_only_repeated(self):
        client = shopper()
        _answer, rows = errors(client, upload(client, "duplicate_rows_exact.csv"))
        assert len(rows) == 1

    def test_neutralise_what_a_spreadsheet_would_run(self):
        client = shopper()
        content = file_of(
            line("SO-1"), line("SO-2", sku="-1+1"), line("SO-3", sku="TEA-100", quantity="=1+1")
        )
        _answer, rows = errors(client, upload(client, content))
        assert not [cell for row in rows for cell in row if cell[:1] in "=+-@\t\r" and cell]


class TestNeutral:
    @pytest.mark.parametrize("cell", ["=1+1", "+1", "-2+3", "@SUM(1)", "\t=1", "\r=1", "\n=1", "＝1"])
    def test_texts_that_begin_as_formulas_do(self, cell):
        assert report.neutral(cell) == f"'{cell}"

    @pytest.mark.parametrize("cell", [-5, 0, "SO-1", "a=b", "", None, "'=1"])
    def test_others_are_left_alone(self, cell):
        assert report.neutral(cell) == cell


class TestForm:
    def test_csv_can_be_filled_in_and_imported(self):
        client = shopper()
        form = client.get("/api/imports/form.csv")

        assert form["Content-Disposition"] == 'attachment; filename="orders.csv"'
        filled = form.content + line("SO-1").encode()
        assert upload(client, filled).json()["data"]["created"] == 1

    def test_csv_has_chinese_headings_for_chinese_readers(self):
        client = shopper()
        client.defaults["HTTP_ACCEPT_LANGUAGE"] = "zh-CN"
        form = client.get("/api/imports/form.csv")

        assert form.content.decode("utf-8-sig").startswith("订单号,手机号,商品编码")
        assert upload(client, form.content + line("SO-1").encode()).json()["data"]["created"] == 1

    def test_workbook_takes_digits_as_text(self):
        client = shopper()
        form = client.get("/api/imports/form.xlsx")

        with zipfile.ZipFile(io.BytesIO(form.content)) as book:
            styles, sheet = book.read("xl/styles.xml"), book.read("xl/worksheets/sheet1.xml")
        assert b'formatCode="@"' in styles
        columns = re.findall(rb'<col min="(\d+)" max="(\d+)"[^>]* style="1"', sheet)
        assert columns == [(b"1", b"3"), (b"7", b"7")]
        answer = upload(client, form.content, name="orders.xlsx")
        assert (answer.status_code, answer.json()["code"]) == (400, "no_rows")

    def test_there_is_no_other(self):
        assert shopper().get("/api/imports/form.ods").status_code == 404
