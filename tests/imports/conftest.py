from pathlib import Path

import pytest

from tests.imports.files import sell_all


@pytest.fixture(autouse=True)
def _own_directory(settings, tmp_path: Path) -> None:
    settings.IMPORTS_DIR = tmp_path / "imports"


@pytest.fixture
def _shop(db) -> None:
    sell_all()
