"""How much of a file is read before it is refused."""

from dataclasses import dataclass, fields
from typing import Final

from django.conf import settings

MAX_QUANTITY: Final = 10_000
MAX_PRICE_MINOR: Final = 10**12
"""What an order's line may hold, whichever way it comes."""

MAX_IDENTIFIER: Final = 64
"""Characters of an order number or SKU."""

MAX_REMARK: Final = 2_000
"""Characters of a remark; a longer one is rejected, never cut."""

CHUNK: Final = 64 * 1024
"""Bytes that are read at a time."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Each field is a setting: ``max_rows`` is ``IMPORTS_MAX_ROWS``."""

    max_bytes: int = 32 * 1024 * 1024
    """Of the file as it is uploaded."""

    max_rows: int = 300_000
    """Lines with data, the heading not counted."""

    max_columns: int = 100
    """Of any row; empty cells of a sheet do not count."""

    max_cell: int = 32_767
    """Characters of one cell: what a spreadsheet program can hold."""

    max_expanded_bytes: int = 256 * 1024 * 1024
    """Of a workbook when it is unpacked, all its parts together."""

    max_ratio: int = 100
    """Unpacked to packed. Sheets of real orders reach 10 to 20, bombs some hundred and more."""

    max_strings: int = 2_000_000
    """Different texts of a workbook: they are the only part that is kept in memory."""

    max_strings_bytes: int = 64 * 1024 * 1024
    """Of these texts when they are unpacked, with their mark-up."""

    max_seconds: int = 60
    """How long reading may take."""

    @classmethod
    def from_settings(cls) -> "Limits":
        """Return the limits of the settings; what is not set has its default."""
        given = {
            field.name: getattr(settings, f"IMPORTS_{field.name.upper()}", None) for field in fields(cls)
        }
        return cls(**{name: value for name, value in given.items() if value is not None})
