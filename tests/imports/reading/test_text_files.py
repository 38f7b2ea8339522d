"""CSV files: encodings, delimiters, line ends, quotes, headings."""

import pytest

from imports.reading.lines import Line
from imports.reading.refusals import FileRefused
from tests.imports.reading.building import csv, line, order

CHINESE = "订单号,手机号,商品编码,数量,单价,下单日期,备注"


class TestEncoding:
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
    def test_chinese_in_each_encoding(self, read, encoding):
        content = csv(line(remark="加急，请电话联系")).decode()

        (item,) = read(content.encode(encoding))

        assert item.remark == "加急，请电话联系"

    def test_big_endian(self, read):
        content = csv(line(remark="急")).decode()

        (item,) = read(b"\xfe\xff" + content.encode("utf-16-be"))

        assert (item.number, item.remark) == (2, "急")

    def test_chinese_headings_prove_the_encoding_of_rare_names(self, read):
        (item,) = read(csv(line(remark="镕堃玥"), heading=CHINESE).decode().encode("gb18030"))

        assert item.remark == "镕堃玥"

    @pytest.mark.parametrize(
        ("remark", "encoding"),
        [
            ("für Müller, größer", "cp1252"),
            ("café", "cp1252"),
            ("Привет, оплачено", "cp1251"),
            ("請在週末下午送貨上門，謝謝", "big5"),
            ("お届けは午後にお願いします", "cp932"),
            ("お届けは午後にお願いします", "euc_jp"),
        ],
    )
    def test_another_encoding_is_refused_rather_than_read_wrongly(self, refused, remark, encoding):
        content = csv(line(remark=f'"{remark}"')).decode().encode(encoding)

        assert refused(content) == "unknown_encoding"

    def test_one_wrong_byte_far_below_refuses_all(self, refused):
        lines = [line(f"SO-{number}", remark="加急") for number in range(3000)]
        assert refused(csv(*lines) + b"SO-9,\xff\xff") == "unknown_encoding"

    def test_a_cut_off_mark_is_no_utf_16(self, refused):
        assert refused(csv(line()).decode().encode("utf-16") + b"a") == "unknown_encoding"

    @pytest.mark.parametrize("encoding", ["utf-16-le", "utf-32"])
    def test_zero_bytes_are_no_text(self, refused, encoding):
        assert refused(csv(line()).decode().encode(encoding)) == "wrong_type"

    def test_a_character_across_two_pieces_is_read(self, read):
        lines = [line(f"SO-{number}", remark="急" * (number % 3 + 1)) for number in range(4000)]

        items = read(csv(*lines))

        assert [item.remark for item in items] == ["急" * (number % 3 + 1) for number in range(4000)]


class TestDelimiter:
    @pytest.mark.parametrize("delimiter", [",", ";", "\t"])
    def test_is_told_by_the_heading(self, read, delimiter):
        content = csv(line(remark="a")).replace(b",", delimiter.encode())

        (item,) = read(content)

        assert (item.order_no, item.remark) == ("SO-1", "a")

    def test_others_are_part_of_the_cells(self, read):
        (item,) = read(csv(line(remark="a;b\tc")))
        assert item.remark == "a;b\tc"

    def test_decimal_commas_are_rejected(self, outcomes):
        content = csv(line(unit_price="19.9")).replace(b",", b";").replace(b"19.9", b"19,90")

        assert outcomes(content) == [(2, "unit_price", "decimal_comma")]


class TestLines:
    @pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
    def test_are_counted_by_any_line_end(self, outcomes, end):
        content = csv(line("SO-1", remark='"a\nb"'), "", line("SO-2")).replace(b"\n", end.encode())

        assert outcomes(content) == [(2, "SO-1"), (5, "SO-2")]

    def test_blank_ones_count_as_lines_of_the_file_only(self, outcomes):
        content = csv("", ",,,,,,", " \u3000,\u00a0,,\u200b", line(), " ")
        assert outcomes(content) == [(5, "SO-1")]

    def test_a_missing_cell_that_may_be_empty_is_empty(self, read):
        (item,) = read(csv(line().removesuffix(",")))
        assert (item.order_no, item.remark) == ("SO-1", "")

    def test_empty_cells_too_many_do_no_harm(self, outcomes):
        assert outcomes(csv(line() + ",,")) == [(2, "SO-1")]

    def test_a_value_below_an_empty_heading_belongs_to_nothing(self, outcomes):
        content = csv("x," + line(), "," + line("SO-2"), heading="," + csv().decode().strip())

        assert outcomes(content) == [(2, "", "cell_without_heading"), (3, "SO-2")]

    def test_columns_of_other_names_are_not_read(self, read):
        (item,) = read(csv(line() + ",9", heading=csv().decode().strip() + ",total"))
        assert item.order_no == "SO-1"


class TestQuotes:
    def test_one_that_is_not_closed_swallows_no_orders(self, refused):
        content = csv(line("SO-1", remark='"not closed'), line("SO-2"), line("SO-3"))
        assert refused(content) == "unpaired_quotes"

    def test_text_behind_the_closing_one_is_refused(self, read, tmp_path):
        with pytest.raises(FileRefused) as refusal:
            read(csv(line("SO-1"), line("SO-2", remark='"5" pipe"')))

        assert refusal.value.code == "unpaired_quotes"
        assert "line 3" in str(refusal.value.reason)

    def test_in_the_middle_they_are_characters(self, read):
        (item,) = read(csv(line(remark='5" pipe')))
        assert item.remark == '5" pipe'


class TestHeadings:
    @pytest.mark.parametrize(
        "heading",
        [
            " Order_No ,CUSTOMER_PHONE,\u200bsku,Quantity ,unit_price,order_date,remark",
            "order no,customer-phone,SKU,quantity,Unit Price,ORDER DATE,Remark",
            '"order_no","customer_phone","sku","quantity","unit_price","order_date","remark"',
            "ｏｒｄｅｒ＿ｎｏ,customer_phone,sku,quantity,unit_price,order_date,remark",
            CHINESE,
            "订单号,customer_phone,sku,数量,unit_price,order_date,备注",
        ],
    )
    def test_are_found_whatever_their_form(self, outcomes, heading):
        assert outcomes(csv(line(), heading=heading)) == [(2, "SO-1")]

    def test_come_in_any_order(self, read):
        heading = "remark,order_date,unit_price,quantity,sku,customer_phone,order_no"
        (item,) = read(csv(",".join(reversed(order(remark="a"))), heading=heading))

        assert (item.order_no, item.quantity, item.remark) == ("SO-1", 2, "a")

    def test_the_remark_may_be_missing(self, read):
        heading = csv().decode().strip().removesuffix(",remark")
        (item,) = read(csv(line().removesuffix(","), heading=heading))
        assert isinstance(item, Line)
        assert item.remark == ""

    def test_one_in_both_languages_is_there_twice(self, refused):
        assert refused(csv(line(), heading=csv().decode().strip() + ",数量")) == "duplicate_column"

    def test_all_missing_ones_are_named(self, read):
        with pytest.raises(FileRefused) as refusal:
            read(csv("SO-1,1", heading="order_no,quantity"))

        assert refusal.value.code == "missing_column"
        assert "customer_phone, sku, unit_price, order_date" in str(refusal.value.reason)

    def test_below_a_title_they_are_not_in_line_1(self, refused):
        assert refused(b"Orders of May\n\n" + csv(line())) == "header_not_in_row_1"

    def test_below_empty_lines_they_are_not_in_line_1(self, refused):
        assert refused(b"\n,,\n" + csv(line())) == "header_not_in_row_1"

    def test_a_file_of_blanks_is_empty(self, refused):
        assert refused(b"\n , \n\n") == "empty_file"

    def test_blank_lines_below_are_no_rows(self, refused):
        assert refused(csv("", ",,,,,,")) == "no_rows"
