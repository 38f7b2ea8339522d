"""Files that are refused as a whole, by what they are and by their size."""

import io
import random
import struct
import zipfile
from pathlib import Path

import pytest
from django.test import override_settings

from imports.reading.kinds import COMPOUND
from imports.reading.limits import MAX_PRICE_MINOR, MAX_QUANTITY, Limits
from imports.reading.refusals import FILES, LINES, FileRefused
from imports.reading.repeats import read_checked
from orders.models import HIGHEST_PRICE_MINOR
from orders.serializers import MAX_QUANTITY as MOST_PIECES
from tests.imports.reading.building import SHEET, Raw, csv, line, order, parts, sheet_data, workbook, zipped

ORDERS = sheet_data(
    [("order_no", "customer_phone", "sku", "quantity", "unit_price", "order_date"), order()[:6]]
)


class TestKinds:
    @pytest.mark.parametrize(
        ("content", "filename"),
        [
            (COMPOUND + bytes(5000), "orders.xls"),
            (COMPOUND + bytes(5000), "orders.xlsx"),
            (b"%PDF-1.7", "orders.csv"),
            (b"\x1f\x8b\x08", "orders.csv"),
            (b"\xef\xbb\xbf  <html><table>", "orders.xlsx"),
            (b"<?xml version='1.0'?>", "orders.csv"),
            (b"\x00\x01\x02", "orders.csv"),
            (zipped({"mimetype": "application/vnd.oasis.opendocument.spreadsheet"}), "orders.ods"),
            (zipped({"a.txt": "a"}), "orders.xlsx"),
            (zipped({"[Content_Types].xml": "", "word/document.xml": ""}), "orders.xlsx"),
            (zipped({"[Content_Types].xml": "", "xl/workbook.bin": ""}), "orders.xlsb"),
            (csv(line()), "orders"),
            (csv(line()), "orders.xls"),
            (csv(line()), "orders.csv.exe"),
            (workbook(order()), "orders.xls"),
        ],
    )
    def test_what_cannot_be_read_is_refused_by_its_content(self, refused, content, filename):
        assert refused(content, filename) == "wrong_type"

    def test_what_is_packed_like_a_workbook_is_named(self, read):
        content = zipped({"mimetype": "application/vnd.oasis.opendocument.spreadsheet"})
        with pytest.raises(FileRefused) as refusal:
            read(content, "orders.ods")
        assert str(refusal.value.reason).startswith("This is an OpenDocument file.")

    @pytest.mark.parametrize("filename", ["A.CSV", "a.b.tsv", "orders.txt"])
    def test_the_name_of_a_text_file_may_end_otherwise(self, outcomes, filename):
        assert outcomes(csv(line()), filename=filename) == [(2, "SO-1")]

    def test_a_password_is_told_from_an_old_workbook(self, refused):
        stream = bytes(70_000) + "EncryptedPackage".encode("utf-16-le") + bytes(100)
        assert refused(COMPOUND + stream, "orders.xlsx") == "encrypted"

    def test_the_mark_of_a_password_is_found_across_two_pieces(self, refused):
        stream = bytes(65_536 - 16) + "EncryptedPackage".encode("utf-16-le")
        assert refused(COMPOUND + stream, "orders.xlsx") == "encrypted"

    def test_encrypted_parts_are_refused(self, refused):
        content = bytearray(workbook(order()))
        content[content.rindex(b"PK\x01\x02") + 8] |= 1
        assert refused(bytes(content)) == "encrypted"

    @pytest.mark.parametrize("filename", ["orders.xlsm", "orders.xlsx"])
    def test_macros_are_refused_whatever_the_name(self, refused, filename):
        content = zipped({**parts(ORDERS), "xl/vbaProject.bin": b"macro"})
        assert refused(content, filename) == "macros"

    @pytest.mark.parametrize("filename", ["orders.csv", "orders.xlsx", "orders.pdf"])
    def test_no_bytes_are_an_empty_file_whatever_the_name(self, refused, filename):
        assert refused(b"", filename) == "empty_file"

    def test_a_lost_file_is_no_refusal(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            read_checked(tmp_path / "lost", filename="orders.csv")


class TestDamage:
    @pytest.mark.parametrize("name", sorted({*parts(ORDERS)} - {"[Content_Types].xml", "xl/styles.xml"}))
    def test_a_workbook_without_a_part_is_unreadable(self, refused, name):
        content = parts(ORDERS)
        del content[name]
        assert refused(zipped(content)) == "unreadable"

    @pytest.mark.parametrize("name", sorted({*parts(ORDERS)} - {"[Content_Types].xml"}))
    def test_a_part_that_breaks_off_is_unreadable(self, refused, name):
        content = parts(ORDERS)
        assert refused(zipped({**content, name: content[name][:-10]})) == "unreadable"

    @pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
    def test_a_workbook_that_breaks_off_is_unreadable(self, refused, share):
        content = workbook(order())
        assert refused(content[: int(len(content) * share)]) == "unreadable"

    @pytest.mark.parametrize("place", [5, 40])
    def test_a_part_that_is_said_to_be_behind_the_end_is_unreadable(self, refused, place):
        content = bytearray(workbook(order()))
        at = content.rindex(b"PK\x01\x02") + 42
        content[at : at + 4] = struct.pack("<I", len(content) - place)
        assert refused(bytes(content)) == "unreadable"

    def test_a_part_that_is_said_to_be_before_the_beginning_is_unreadable(self, refused):
        content = bytearray(workbook(order()))
        at = content.rindex(b"PK\x05\x06") + 16
        content[at + 2] = 1
        assert refused(bytes(content)) == "unreadable"

    def test_a_part_that_is_said_to_be_longer_than_the_file_is_unreadable(self, refused):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, part in parts(ORDERS).items():
                archive.writestr(name, part)
        content = bytearray(file.getvalue())
        at = content.rindex(b"PK\x01\x02") + 20
        content[at : at + 8] = struct.pack("<II", 1_000_000, 1_000_000)
        assert refused(bytes(content)) == "unreadable"

    def test_a_part_that_needs_a_later_program_is_unreadable(self, refused):
        content = bytearray(workbook(order()))
        content[content.rindex(b"PK\x01\x02") + 6] = 99
        assert refused(bytes(content)) == "unreadable"

    def test_a_name_that_is_no_text_is_unreadable(self, refused):
        content = bytearray(workbook(order()))
        at = content.rindex(b"PK\x01\x02")
        content[at + 9] |= 8  # the name is said to be UTF-8
        content[at + 46] = 0xFF
        assert refused(bytes(content)) == "unreadable"

    def test_two_parts_of_one_name_are_ambiguous(self, refused):
        file = io.BytesIO(workbook(order()))
        with zipfile.ZipFile(file, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr(SHEET, parts(ORDERS)[SHEET])
        assert refused(file.getvalue()) == "unreadable"

    @pytest.mark.parametrize(
        "cell",
        [
            Raw("<v>9</v>", 't="s"'),
            Raw("<v>-1</v>", 't="s"'),
            Raw("<v>²</v>", 't="s"'),
            Raw("<v>1</v>", 's="99"'),
            Raw("<v>1</v>", 't="unheard"'),
        ],
    )
    def test_a_cell_that_refers_to_nothing_is_unreadable(self, refused, cell):
        assert refused(workbook(order(cell))) == "unreadable"

    @pytest.mark.parametrize("reference", ["A", "A2:", "2:3", "A2:A99999999"])
    def test_a_merged_range_that_is_none_is_unreadable(self, refused, reference):
        behind = f'<mergeCells><mergeCell ref="{reference}"/></mergeCells>'
        assert refused(workbook(order(), behind=behind)) == "unreadable"

    def test_other_ways_to_pack_are_refused(self, refused):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as archive:
            for name, part in parts(ORDERS).items():
                archive.writestr(name, part)
        assert refused(file.getvalue()) == "unreadable"


class TestHostileMarkup:
    ENTITY = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b SYSTEM "file:///etc/passwd">]>'

    @pytest.mark.parametrize("name", sorted({*parts(ORDERS)} - {"[Content_Types].xml"}))
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
    def test_document_type_definitions_are_refused_in_each_part(self, refused, name, encoding):
        content = parts(ORDERS)
        content[name] = (self.ENTITY + content[name]).encode(encoding)
        assert refused(zipped(content)) == "external_entities"

    @pytest.mark.parametrize("name", ["xl/workbook.xml", "xl/styles.xml", "xl/_rels/workbook.xml.rels"])
    def test_long_descriptions_are_refused(self, refused, name):
        content = parts(ORDERS)
        comment = f"<!--{random.Random(1).randbytes(64 * 1024).hex()}-->"
        content[name] += comment * 130
        assert refused(zipped(content)) == "unreadable"

    NEST = "<a>" * 100 + "</a>" * 100

    @pytest.mark.parametrize("name", [SHEET, "xl/workbook.xml", "xl/styles.xml"])
    def test_deep_nesting_is_refused(self, refused, name):
        content = parts(ORDERS)
        start, between, end = content[name].rpartition("</")
        assert refused(zipped({**content, name: start + self.NEST + between + end})) == "unreadable"

    def test_an_endless_tag_is_refused(self, refused):
        assert refused(zipped(parts(ORDERS + f'<row a="{"9" * 3_000_000}"/>'))) == "unreadable"


class TestLimits:
    @pytest.mark.parametrize(
        ("content", "limit", "code"),
        [
            (csv(line(), line("SO-2")), {"max_rows": 1}, "too_many_rows"),
            (workbook(order(), order("SO-2")), {"max_rows": 1}, "too_many_rows"),
            (csv(line()), {"max_bytes": 50}, "too_large"),
            (csv(line()), {"max_columns": 6}, "too_many_columns"),
            (workbook(order()), {"max_columns": 6}, "too_many_columns"),
            (csv(line(remark="x" * 21)), {"max_cell": 20}, "cell_too_long"),
            (workbook(order(remark="x" * 21)), {"max_cell": 20}, "cell_too_long"),
            (csv(line(remark='"' + "x\n" * 100_000 + '"')), {}, "cell_too_long"),
            (csv("," * 1024 * 1024), {}, "line_too_long"),
            (csv('"a\n",' * 220_000), {}, "line_too_long"),
            (csv(line()), {"max_seconds": -1}, "takes_too_long"),
            (workbook(order()), {"max_seconds": -1}, "takes_too_long"),
            (workbook(order()), {"max_expanded_bytes": 1000}, "zip_bomb"),
        ],
    )
    def test_over_them_a_file_is_refused(self, refused, content, limit, code):
        assert refused(content, **limit) == code

    def test_up_to_them_it_is_read(self, outcomes):
        exact = {"max_rows": 1, "max_columns": 7, "max_cell": 20}
        assert outcomes(csv(line(remark="x" * 20)), **exact) == [(2, "SO-1")]
        assert outcomes(workbook(order(remark="x" * 20)), **exact) == [(2, "SO-1")]

    def test_the_texts_of_a_workbook_are_counted(self, refused):
        content = parts(ORDERS)
        relations = "xl/_rels/workbook.xml.rels"
        content[relations] = content[relations].replace("styles", "sharedStrings")
        content["xl/sharedStrings.xml"] = content["xl/styles.xml"] = (
            '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
            "<si><t>a</t></si><si><t>b</t></si></sst>"
        )
        assert refused(zipped(content), max_strings=1) == "too_many_strings"
        assert refused(zipped(content), max_strings_bytes=100) == "too_many_strings"

    def test_a_long_list_of_parts_is_not_read(self, refused):
        content = {**parts(ORDERS), **{f"xl/media/{number}.png": "" for number in range(5000)}}
        assert refused(zipped(content)) == "zip_bomb"

    @override_settings(IMPORTS_MAX_ROWS=3, IMPORTS_MAX_BYTES=None)
    def test_are_settings(self):
        assert Limits.from_settings() == Limits(max_rows=3)

    def test_of_an_order_are_those_of_the_shop(self):
        assert (MAX_QUANTITY, MAX_PRICE_MINOR) == (MOST_PIECES, HIGHEST_PRICE_MINOR)


class TestWholeFileFirst:
    def test_an_error_in_the_last_line_is_told_before_the_first(self, tmp_path):
        path = tmp_path / "upload"
        path.write_bytes(csv(*(line(f"SO-{number}") for number in range(5000)), line(remark='"')))

        with pytest.raises(FileRefused) as refusal:
            read_checked(path, filename="orders.csv")

        assert refusal.value.code == "unpaired_quotes"

    def test_the_file_may_vanish_meanwhile(self, tmp_path: Path):
        path = tmp_path / "upload"
        path.write_bytes(csv(line(), line("SO-2")))

        items = read_checked(path, filename="orders.csv")
        path.unlink()

        assert [item.order_no for item in items] == ["SO-1", "SO-2"]

    def test_one_that_is_not_read_to_its_end_leaves_nothing_open(self, tmp_path: Path):
        path = tmp_path / "upload"
        path.write_bytes(csv(*(line(f"SO-{number}") for number in range(20_000))))

        items = read_checked(path, filename="orders.csv")
        next(items)
        items.close()

        assert list(items) == []


def test_each_code_has_one_text():
    assert len({str(text) for text in (*FILES.values(), *LINES.values())}) == len(FILES) + len(LINES)
