from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from imports.reading.limits import Limits
from imports.reading.lines import Line, Rejection
from imports.reading.refusals import FileRefused
from imports.reading.repeats import Repeat, read_checked
from tests.imports.reading.building import outcome

Read = Callable[..., list[Line | Rejection | Repeat]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads bytes as an uploaded file."""

    def read(content: bytes, filename: str = "", **limits: Any) -> list[Line | Rejection | Repeat]:
        path = tmp_path / "upload"
        path.write_bytes(content)
        name = filename or ("orders.xlsx" if content.startswith(b"PK") else "orders.csv")
        return list(read_checked(path, filename=name, limits=Limits(**limits)))

    return read


@pytest.fixture
def outcomes(read: Read) -> Callable[..., list[Any]]:
    """Reads bytes, and says in short what became of the lines."""
    return lambda content, **options: [outcome(item) for item in read(content, **options)]


@pytest.fixture
def refused(read: Read) -> Callable[..., str]:
    """Reads bytes that are refused, and returns the code."""

    def refused(content: bytes, filename: str = "", **limits: Any) -> str:
        with pytest.raises(FileRefused) as refusal:
            read(content, filename, **limits)
        assert str(refusal.value.reason)
        return refusal.value.code

    return refused
