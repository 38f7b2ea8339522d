"""Files of orders, made cell by cell."""

import io
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from imports.reading.columns import COLUMNS
from imports.reading.lines import Line, Rejection
from imports.reading.repeats import Repeat

FILES = Path(__file__).parents[2] / "data" / "files"

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"

FORMATS = ("General", "000000", "yyyy\\-mm\\-dd", "h:mm", "0.00", '"SO-"0', "@", "#,##0", '"¥"#,##0.00', "0%")

SHEET = "xl/worksheets/sheet1.xml"


@dataclass(frozen=True)
class Raw:
    """A cell as its XML says: attributes, and what is in it."""

    inner: str = ""
    attributes: str = ""


def number(text: str, shown: str = "General") -> Raw:
    """A numeric cell with a number format, one of ``FORMATS``."""
    return Raw(f"<v>{text}</v>", f's="{FORMATS.index(shown)}"')


def order(order_no: Any = "SO-1", **cells: Any) -> list[Any]:
    """The cells of an order, in the order of the template."""
    values = {
        "order_no": order_no,
        "customer_phone": "13800000001",
        "sku": "TEA-100",
        "quantity": "2",
        "unit_price": "19.90",
        "order_date": "2024-11-01",
        "remark": "",
    }
    return list({**values, **cells}.values())


def sheet_data(rows: Sequence[Sequence[Any]]) -> str:
    """The lines of a sheet, from line 1."""
    return "".join(
        f'<row r="{line}">{"".join(_cells(line, cells))}</row>' for line, cells in enumerate(rows, start=1)
    )


def _cells(line: int, cells: Sequence[Any]) -> Iterator[str]:
    for letter, cell in zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", cells, strict=False):
        if isinstance(cell, Raw):
            yield f'<c r="{letter}{line}" {cell.attributes}>{cell.inner}</c>'
        elif cell != "":
            text = f'<is><t xml:space="preserve">{escape(cell)}</t></is>'
            yield f'<c r="{letter}{line}" t="inlineStr">{text}</c>'


def parts(data: str, *, behind: str = "", properties: str = "", sheets: str = "") -> dict[str, str]:
    """The parts of a workbook with this content of ``<sheetData>``."""
    formats = "".join(
        f'<numFmt numFmtId="{200 + place}" formatCode={quoteattr(code)}/>'
        for place, code in enumerate(FORMATS)
    )
    styles = "".join(f'<xf numFmtId="{200 + place}"/>' for place in range(len(FORMATS)))
    return {
        "[Content_Types].xml": f'<Types xmlns="{TYPES}"/>',
        "_rels/.rels": _relations(("r1", "officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><workbookPr {properties}/>'
        f'<sheets>{sheets}<sheet name="orders" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": _relations(
            ("r1", "worksheet", "worksheets/sheet1.xml"), ("r2", "styles", "/xl/styles.xml")
        ),
        "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><numFmts>{formats}</numFmts>'
        f"<cellStyleXfs><xf/></cellStyleXfs><cellXfs>{styles}</cellXfs></styleSheet>",
        SHEET: f'<worksheet xmlns="{MAIN}"><sheetData>{data}</sheetData>{behind}</worksheet>',
    }


def _relations(*relations: tuple[str, str, str]) -> str:
    inner = "".join(
        f'<Relationship Id="{name}" Type="{OFFICE}/{kind}" Target="{target}"/>'
        for name, kind, target in relations
    )
    return f'<Relationships xmlns="{RELATIONS}">{inner}</Relationships>'


def zipped(content: Mapping[str, str | bytes]) -> bytes:
    """A zip file of these parts."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in content.items():
            archive.writestr(name, part)
    return file.getvalue()


def workbook(*rows: Sequence[Any], **options: str) -> bytes:
    """A workbook with the headings and these lines."""
    return zipped(parts(sheet_data([COLUMNS, *rows]), **options))


def csv(*lines: str, heading: str = ",".join(COLUMNS)) -> bytes:
    """A text file with a heading and these lines."""
    return "\n".join([heading, *lines, ""]).encode()


def line(order_no: str = "SO-1", **cells: str) -> str:
    """A line of a text file, without quotes."""
    return ",".join(order(order_no, **cells))


def outcome(item: Line | Rejection | Repeat) -> Any:
    """What became of a line, in short."""
    match item:
        case Line():
            return (item.number, item.order_no)
        case Rejection():
            return (item.number, item.column, item.code)
        case Repeat():
            return (item.number, "repeats", item.first_number)
