"""What the shop writes for spreadsheet programs: the report of rejected lines, and an empty form."""

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any, Final

import xlsxwriter
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from .models import Finding, Import
from .reading.columns import CHINESE, COLUMNS

BOM: Final = "\ufeff"
"""Spreadsheet programs take a file without it for their country's own encoding."""

FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What a spreadsheet program takes for the beginning of a formula, or skips before one."""

TEXTS: Final = ("order_no", "customer_phone", "sku", "remark")
"""Columns of the form in which digits are text: leading zeros and long numbers stay as they are typed."""


def neutral(cell: Any) -> Any:
    """Return a cell that no spreadsheet program runs; numbers stay numbers."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell


def rows(*cells: Iterable[Any]) -> str:
    """Spell rows as CSV."""
    file = io.StringIO()
    csv.writer(file).writerows([neutral(cell) for cell in row] for row in cells)
    return file.getvalue()


def rejections(source: Import) -> Iterator[str]:
    """Yield the report of an import as CSV: line, column and reason of each rejected line, as far as kept."""
    yield BOM + rows([_("line"), _("column"), _("reason"), _("order number"), _("code")])
    found = source.findings.filter(kind=Finding.Kind.REJECTED).order_by("line")
    for finding in found.iterator():
        yield rows([finding.line, finding.column, finding.reason, finding.order_no, finding.code])
    if missing := source.rejected - found.count():
        text = _("%(count)s more lines were rejected; their reasons were not kept.") % {"count": missing}
        yield rows(["", "", text, "", ""])


def headings() -> list[str]:
    """Return the columns of a file, in the reader's language."""
    names = {name: heading for heading, name in CHINESE.items()}
    return [names[name] for name in COLUMNS] if (get_language() or "").startswith("zh") else list(COLUMNS)


def form_csv() -> bytes:
    """Return the form to fill in, as CSV."""
    return (BOM + rows(headings())).encode()


def form_xlsx() -> bytes:
    """Return the form as a workbook, whose cells for numbers and codes take text."""
    file = io.BytesIO()
    with xlsxwriter.Workbook(file, {"in_memory": True}) as book:
        sheet = book.add_worksheet()
        text, bold = book.add_format({"num_format": "@"}), book.add_format({"bold": True})
        for place, name in enumerate(COLUMNS):
            sheet.set_column(place, place, 20, text if name in TEXTS else None)
        sheet.write_row(0, 0, headings(), bold)
        sheet.freeze_panes(1, 0)
    return file.getvalue()
