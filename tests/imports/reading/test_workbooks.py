"""Workbooks: values, formats, formulas, merged cells, sheets."""

import io
from datetime import date

import pytest
import xlsxwriter

from imports.reading.columns import COLUMNS
from imports.reading.lines import Line
from tests.imports.reading.building import (
    FORMATS,
    SHEET,
    Raw,
    number,
    order,
    parts,
    sheet_data,
    workbook,
    zipped,
)


@pytest.fixture
def one(read):
    """Reads a workbook with one order of these cells."""

    def one(**cells):
        (item,) = read(workbook(order(**cells)))
        return item

    return one


class TestIdentifiers:
    @pytest.mark.parametrize(
        ("cell", "text"),
        [
            (number("1001"), "1001"),
            (number("1002.0"), "1002"),
            (number("1.38E10"), "13800000000"),
            (number("999999999999999"), "999999999999999"),
            (number("0"), "0"),
            (number("1001", "@"), "1001"),
            (number("1001", "#,##0"), "1001"),
            (number("1001", "0.00"), "1001"),
            (number("123456", "000000"), "123456"),
            ("\u00a0SO/1._-a \u3000", "SO/1._-a"),
            ("0" * 64, "0" * 64),
        ],
    )
    def test_are_text_with_all_digits(self, one, cell, text):
        item = one(order_no=cell)
        assert (type(item), item.order_no) == (Line, text)

    @pytest.mark.parametrize(
        ("cell", "code"),
        [
            (number("1000000000000000"), "lost_digits"),
            (number("2.0241101000001200E+17"), "lost_digits"),
            (number("1E+300"), "lost_digits"),
            (number("1.5"), "invalid_characters"),
            (number("-1"), "invalid_characters"),
            (number("NaN"), "invalid_characters"),
            (number("1e9999999"), "invalid_characters"),
            (number("123", "000000"), "shown_differently"),
            (number("123", '"SO-"0'), "shown_differently"),
            (number("45597", "yyyy\\-mm\\-dd"), "shown_differently"),
            (number("1", "0%"), "shown_differently"),
            ("2.02411E+17", "lost_digits"),
            ("1e5", "lost_digits"),
            ("0" * 65, "invalid_characters"),
            ("订单1", "invalid_characters"),
            ("ＳＯ１", "invalid_characters"),
            ("SO 1", "invalid_characters"),
            ("SO\u200b1", "invalid_characters"),
            ("=SO1", "invalid_characters"),
            ("", "missing_value"),
            ("\u00a0", "missing_value"),
        ],
    )
    def test_that_are_not_sure_are_rejected(self, one, cell, code):
        item = one(order_no=cell)
        assert (item.column, item.code, item.order_no) == ("order_no", code, "")

    @pytest.mark.parametrize(
        "cell", ["1380000000", "138000000011", "+8613800000001", "１３８００００００01", "138 0000 0001"]
    )
    def test_a_phone_has_11_digits(self, one, cell):
        item = one(customer_phone=cell)
        assert (item.column, item.code, item.order_no) == ("customer_phone", "invalid_phone", "SO-1")

    def test_a_phone_in_scientific_notation_has_lost_digits(self, one):
        assert one(customer_phone="1.38E+10").code == "lost_digits"


class TestQuantities:
    @pytest.mark.parametrize(
        ("cell", "quantity"),
        [
            ("1", 1),
            (" 2 ", 2),
            ("2.0", 2),
            ("010000", 10_000),
            (number("2"), 2),
            (number("2.0000000000000004"), 2),
        ],
    )
    def test_are_whole(self, one, cell, quantity):
        assert one(quantity=cell).quantity == quantity

    @pytest.mark.parametrize(
        "cell",
        [
            "0",
            "-1",
            "+1",
            "1.5",
            "1e3",
            "1,000",
            "２",
            "NaN",
            "∞",
            "10001",
            "9" * 30,
            "2.",
            ".5",
            "0x2",
            "1 0",
        ]
        + [number(text) for text in ("0", "-1", "1.5", "10001", "1e300", "1e-300", "NaN", "INF")],
    )
    def test_of_another_form_are_rejected(self, one, cell):
        item = one(quantity=cell)
        assert (item.column, item.code) == ("quantity", "invalid_quantity")

    @pytest.mark.parametrize("shown", ["yyyy\\-mm\\-dd", "h:mm", "0%"])
    def test_that_show_something_else_are_rejected(self, one, shown):
        assert one(quantity=number("2", shown)).code == "shown_differently"


class TestPrices:
    @pytest.mark.parametrize(
        ("cell", "minor"),
        [
            ("0", 0),
            ("19.9", 1990),
            ("19.90\u00a0", 1990),
            ("10000000000", 10**12),
            (number("19.899999999999999"), 1990),
            (number("0.1"), 10),
            (number("1e3"), 100_000),
            (number("129.0", '"¥"#,##0.00'), 12_900),
        ],
    )
    def test_are_exact(self, one, cell, minor):
        assert one(unit_price=cell).unit_price_minor == minor

    @pytest.mark.parametrize(
        "cell",
        ["-5.00", "+5", "12.345", "19.900", "1E+3", "NaN", "¥5", "19.", ".5", "１９", "10000000000.01"]
        + [number(text) for text in ("-5", "12.345", "1e300", "NaN", "99999999999999999")],
    )
    def test_of_another_form_are_rejected(self, one, cell):
        item = one(unit_price=cell)
        assert (item.column, item.code) == ("unit_price", "invalid_price")

    @pytest.mark.parametrize("cell", ["1,234.50", "1.234,50", "19,90"])
    def test_with_commas_are_rejected_with_a_reason_of_their_own(self, one, cell):
        assert one(unit_price=cell).code == "decimal_comma"


class TestDays:
    @pytest.mark.parametrize(
        ("cell", "day"),
        [
            (" 2024-02-29 ", date(2024, 2, 29)),
            (number("45597", "yyyy\\-mm\\-dd"), date(2024, 11, 1)),
            (number("45597.99999", "yyyy\\-mm\\-dd"), date(2024, 11, 1)),
            (number("61", "yyyy\\-mm\\-dd"), date(1900, 3, 1)),
            (Raw("<v>2024-11-01T18:00:00</v>", 't="d"'), date(2024, 11, 1)),
        ],
    )
    def test_are_found(self, one, cell, day):
        assert one(order_date=cell).order_date == day

    @pytest.mark.parametrize(
        "cell",
        [
            "2024-02-30",
            "2024-13-01",
            "01/02/2024",
            "2024/11/01",
            "20241101",
            "2024-11-01 18:00",
            "２024-11-01",
        ]
        + [number("45597"), number("45597", "@"), number("0.5", "h:mm"), number("45597", "h:mm")]
        + [number(text, "yyyy\\-mm\\-dd") for text in ("60", "1", "-1", "2958466", "9999999", "1e12")],
    )
    def test_of_another_form_are_rejected(self, one, cell):
        item = one(order_date=cell)
        assert (item.column, item.code) == ("order_date", "invalid_date")

    def test_are_counted_from_1904_where_the_workbook_says_so(self, read):
        content = workbook(order(order_date=number("44135", "yyyy\\-mm\\-dd")), properties='date1904="1"')
        assert read(content)[0].order_date == date(2024, 11, 1)


class TestRemarks:
    @pytest.mark.parametrize(
        ("cell", "text"),
        [
            ("  as typed\t", "  as typed\t"),
            ("=1+1", "=1+1"),
            (" \u3000", ""),
            (Raw("<is><r><t>two </t></r><r><t>runs</t></r></is>", 't="inlineStr"'), "two runs"),
            (Raw("<is><t>漢</t><rPh><t>カン</t></rPh><t>字</t></is>", 't="inlineStr"'), "漢字"),
            (Raw("<is><t>a_x000D_b_x005F_x000D_</t></is>", 't="inlineStr"'), "a\rb_x000D_"),
            (Raw('<f>""</f><v></v>', 't="str"'), ""),
            (Raw("<v>1</v>", 't="b"'), "TRUE"),
            (number("0.30000000000000004"), "0.3"),
            (number("45597.5", "yyyy\\-mm\\-dd"), "2024-11-01"),
            ("x" * 2000, "x" * 2000),
        ],
    )
    def test_are_as_they_are_typed(self, one, cell, text):
        item = one(remark=cell)
        assert (type(item), item.remark) == (Line, text)

    @pytest.mark.parametrize(
        ("cell", "code"),
        [
            ("x" * 2001, "text_too_long"),
            ("lost \ufffd", "control_character"),
            (Raw("<is><t>_x0000_</t></is>", 't="inlineStr"'), "control_character"),
            (Raw("<is><t>_xD83D_</t></is>", 't="inlineStr"'), "control_character"),
            (number("1e300"), "lost_digits"),
            (Raw("<v>#N/A</v>", 't="e"'), "error_value"),
            (Raw("<f>NOW()</f>"), "formula_without_value"),
        ],
    )
    def test_that_no_text_holds_are_rejected(self, one, cell, code):
        item = one(remark=cell)
        assert (item.column, item.code) == ("remark", code)


class TestLines:
    def test_lines_that_show_nothing_are_no_lines(self, outcomes):
        styled = [Raw("", 's="1"')] * 7
        assert outcomes(workbook(styled, order(), [" "] * 7, styled)) == [(3, "SO-1")]

    def test_a_line_of_broken_formulas_is_a_line(self, outcomes):
        assert outcomes(workbook(order(), [Raw("<f>A2</f>")])) == [
            (2, "SO-1"),
            (3, "order_no", "formula_without_value"),
        ]

    def test_lines_and_cells_without_a_reference_follow_each_other(self, outcomes):
        text = '<c t="inlineStr"><is><t>{}</t></is></c>'
        rows = "".join(
            f"<row>{''.join(text.format(cell) for cell in cells)}</row>"
            for cells in (COLUMNS, order(remark="a"), order("SO-2", remark="b"))
        )
        assert outcomes(zipped(parts(rows))) == [(2, "SO-1"), (3, "SO-2")]

    @pytest.mark.parametrize("first", ["1", "0", "-1", "x", "1048577", "99999999999", "²"])
    def test_numbers_of_lines_that_do_not_rise_are_refused(self, refused, first):
        data = sheet_data([COLUMNS]) + sheet_data([order()]).replace('r="1"', f'r="{first}"', 1)
        assert refused(zipped(parts(data))) == "unreadable"

    def test_two_cells_in_one_place_are_refused(self, refused):
        data = sheet_data([COLUMNS, order()]).replace('r="B2"', 'r="A2"')
        assert refused(zipped(parts(data))) == "unreadable"

    def test_the_last_place_of_a_sheet_costs_nothing(self, refused, outcomes):
        data = sheet_data([COLUMNS, order()])
        styled = '<row r="1048576"><c r="XFD1048576" s="1"/></row>'
        assert outcomes(zipped(parts(data + styled))) == [(2, "SO-1")]
        filled = styled.replace("/></row>", "><v>1</v></c></row>")
        assert refused(zipped(parts(data + filled))) == "too_many_columns"


class TestMergedCells:
    def test_lines_that_share_a_cell_are_all_rejected(self, outcomes):
        content = workbook(
            *(order(f"SO-{count}") for count in range(1, 7)),
            behind='<mergeCells><mergeCell ref="G3:G4"/><mergeCell ref="A6:B7"/></mergeCells>',
        )
        assert outcomes(content) == [
            (2, "SO-1"),
            (3, "remark", "merged_cells"),
            (4, "remark", "merged_cells"),
            (5, "SO-4"),
            (6, "order_no", "merged_cells"),
            (7, "order_no", "merged_cells"),
        ]

    def test_outside_the_columns_and_within_a_line_they_do_no_harm(self, outcomes):
        content = workbook(
            order("SO-1"),
            order("SO-2"),
            behind='<mergeCells><mergeCell ref="H2:H3"/><mergeCell ref="G2:J2"/></mergeCells>',
        )
        assert outcomes(content) == [(2, "SO-1"), (3, "SO-2")]

    def test_a_repeat_of_a_merged_line_is_rejected_too(self, outcomes):
        content = workbook(
            order("SO-1"),
            order("SO-2"),
            order("SO-1"),
            behind='<mergeCells><mergeCell ref="G2:G3"/></mergeCells>',
        )
        assert outcomes(content) == [
            (2, "remark", "merged_cells"),
            (3, "remark", "merged_cells"),
            (4, "order_no", "contradicting"),
        ]

    def test_a_long_range_is_not_forgotten_for_a_short_one_in_it(self, outcomes):
        content = workbook(
            *(order(f"SO-{count}") for count in range(1, 6)),
            behind='<mergeCells><mergeCell ref="A2:A5"/><mergeCell ref="B3:B4"/></mergeCells>',
        )
        merged = [(line, "order_no", "merged_cells") for line in (2, 3, 4, 5)]
        assert outcomes(content) == [*merged, (6, "SO-5")]


class TestSheets:
    HIDDEN = '<sheet name="notes" sheetId="9" state="{}" r:id="r9"/>'

    @pytest.mark.parametrize("state", ["hidden", "veryHidden"])
    def test_hidden_ones_are_passed_over(self, outcomes, state):
        assert outcomes(workbook(order(), sheets=self.HIDDEN.format(state))) == [(2, "SO-1")]

    def test_the_first_visible_one_must_be_there(self, refused):
        assert refused(workbook(order(), sheets=self.HIDDEN.format("visible"))) == "unreadable"

    def test_other_prefixes_of_the_same_names_are_read(self, outcomes):
        content = parts(sheet_data([COLUMNS, order()]))
        content[SHEET] = (
            content[SHEET].replace("<", "<x:").replace("<x:/", "</x:").replace("xmlns=", "xmlns:x=")
        )
        assert outcomes(zipped(content)) == [(2, "SO-1")]

    def test_the_strict_form_is_read(self, outcomes):
        content = parts(sheet_data([COLUMNS, order()]))
        strict = {
            name: part.replace(
                "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
                "http://purl.oclc.org/ooxml/spreadsheetml/main",
            )
            for name, part in content.items()
        }
        assert outcomes(zipped(strict)) == [(2, "SO-1")]


class TestAsProgramsWriteThem:
    def test_a_chart_before_the_orders(self, outcomes):
        file = io.BytesIO()
        with xlsxwriter.Workbook(file, {"in_memory": True}) as book:
            chart, sheet = book.add_chartsheet(), book.add_worksheet("orders")
            chart.set_chart(book.add_chart({"type": "line"}))
            book.charts[0].add_series({"values": "=orders!$D$2:$D$2"})
            sheet.write_row(0, 0, COLUMNS)
            sheet.write_row(1, 0, order())

        assert outcomes(file.getvalue()) == [(2, "SO-1")]

    def test_shared_texts_dates_formulas_and_formats(self, read):
        file = io.BytesIO()
        with xlsxwriter.Workbook(file, {"in_memory": True}) as book:
            sheet = book.add_worksheet("订单")
            book.add_worksheet("other").write(0, 0, "not read")
            day = book.add_format({"num_format": "yyyy-mm-dd"})
            chinese_day = book.add_format({"num_format": 31})
            sheet.write_row(0, 0, ["订单号", "手机号", "商品编码", "数量", "单价", "下单日期", "备注"])
            for row, format_ in enumerate((day, chinese_day), start=1):
                sheet.write_row(row, 0, [f"SO-{row}", "13800000001", "TEA-100", 2])
                sheet.write_formula(row, 4, "=ROUND(39.8/2,2)", None, 19.9)
                sheet.write_number(row, 5, 45597.75, format_)
                sheet.write_rich_string(row, 6, "same ", book.add_format({"bold": True}), "text")

        first, second = read(file.getvalue())

        assert first == Line(2, "SO-1", "13800000001", "TEA-100", 2, 1990, date(2024, 11, 1), "same text")
        assert (second.number, second.order_no, second.order_date) == (3, "SO-2", date(2024, 11, 1))


def test_the_formats_of_these_tests_are_different():
    assert len(FORMATS) == len(set(FORMATS))
