"""Lines between the reading of the whole file and the import: on disk, not in memory."""

import json
import tempfile
from collections.abc import Iterator
from typing import Any, Final

IN_MEMORY: Final = 1024 * 1024
"""Bytes that are kept without a file."""


class Spool:
    """Keeps plain values by line, in a temporary file that has no name."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY, "w+", encoding="ascii", newline="\n")  # noqa: SIM115
        self._encode = json.JSONEncoder(separators=(",", ":"), default=str).encode

    def __enter__(self) -> "Spool":
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()

    def add(self, number: int, values: list[Any]) -> str:
        """Keep what the line ``number`` holds, and return it as the text that stands for it."""
        text = self._encode(values)
        self._file.write(f"{number} {text}\n")
        return text

    def __iter__(self) -> Iterator[tuple[int, list[Any]]]:
        """Yield the lines in the order in which they came."""
        self._file.seek(0)
        for line in self._file:
            number, _blank, text = line.partition(" ")
            yield int(number), json.loads(text)
