"""Why a whole file, or one of its lines, is not imported: stable codes, and texts for people."""

from typing import Any, Final

from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

FILES: Final[dict[str, Any]] = {
    "cell_too_long": _("A cell in line {line} has more than {limit} characters."),
    "duplicate_column": _("The file has the column {column} twice."),
    "empty_file": _("The file is empty."),
    "encrypted": _("The file is protected by a password. Save it without one."),
    "external_entities": _("The workbook holds a document type definition, which is refused."),
    "header_not_in_row_1": _(
        "The headings are in line {line}. Delete the lines above: they must be in line 1."
    ),
    "line_too_long": _("Line {line} has more than {limit} characters."),
    "macros": _("The workbook holds macros. Save it as .xlsx without macros."),
    "missing_column": _("The file has no column {columns}."),
    "no_rows": _("The file has headings but no data rows."),
    "takes_too_long": _("Reading the file takes longer than {limit} seconds. Split it."),
    "too_large": _("The file is larger than {limit} bytes. Split it."),
    "too_many_columns": _("Line {line} has more than {limit} columns."),
    "too_many_rows": _("The file has more than {limit} data rows. Split it."),
    "too_many_strings": _("The workbook holds too many different texts. Split it, or save it as CSV."),
    "unknown_encoding": _("The characters are neither UTF-8 nor GB18030. Save the file as “CSV UTF-8”."),
    "unpaired_quotes": _("The quotes in line {line} or below do not pair up."),
    "unreadable": _("The file is damaged and cannot be read."),
    "wrong_type": _("This is {content}. Only CSV and .xlsx files can be imported."),
    "zip_bomb": _("The workbook is too large when it is unpacked."),
}
"""A file is refused before its first line is imported."""

RENAMED: Final = _("The name ends in {name}, but the content is {content}. Save it as what it is.")
"""A ``wrong_type`` too, only that both could be imported."""

LINES: Final[dict[str, Any]] = {
    "cell_without_heading": _("There are more cells than headings. Is a comma not in quotes?"),
    "contradicting": _("The same order number has other content in line {others}."),
    "control_character": _("There is a control or replacement character in the text."),
    "decimal_comma": _(
        "A price is written with a decimal point and without thousands marks, such as 1234.50."
    ),
    "error_value": _("The cell shows an error."),
    "formula_without_value": _(
        "The formula has no value. Open the file in a spreadsheet program and save it."
    ),
    "invalid_characters": _("Only letters, digits and - _ . / are allowed, at most {limit} of them."),
    "invalid_date": _("A date is written YYYY-MM-DD, or is a date cell of a workbook."),
    "invalid_phone": _("A phone number has 11 digits."),
    "invalid_price": _("A price is 0 or more, with at most 2 decimals, such as 1234.50."),
    "invalid_quantity": _("A quantity is a whole number from 1 to {limit}."),
    "lost_digits": _("The spreadsheet program has lost digits of this number. Enter it as text."),
    "merged_cells": _("The cell is merged over several lines. Each line is one order and needs its own."),
    "missing_value": _("There is no value."),
    "shown_differently": _(
        "The cell shows something else than it holds, such as leading zeros. Enter it as text."
    ),
    "text_too_long": _("The text has more than {limit} characters."),
}
"""A rejected line does not stop the others."""


class FileRefused(Exception):
    """The whole file is refused: ``code`` is stable, ``reason`` for people, translated when it is shown."""

    def __init__(self, code: str, reason: str | Promise) -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason

    def __str__(self) -> str:
        return self.code


def refusal(code: str, **params: Any) -> FileRefused:
    """Return the refusal of a file for ``code``."""
    return FileRefused(code, format_lazy(FILES[code], **params))


def renamed(*, name: str, content: Any) -> FileRefused:
    """Return the refusal of a file whose name says that it is something else."""
    return FileRefused("wrong_type", format_lazy(RENAMED, name=name, content=content))


def reason(code: str, **params: Any) -> str:
    """Return why a line is rejected, translated when it is shown."""
    text: str = format_lazy(LINES[code], **params)
    return text
