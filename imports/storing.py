"""Uploaded files on disk, from the upload until their import has ended. The name is the import's id.

Web servers and workers need the same ``IMPORTS_DIR``.
"""

import os
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final
from uuid import UUID

from django.conf import settings

from .models import Import
from .reading.digest import Digest, save

FORGOTTEN_AFTER: Final = timedelta(days=1)
"""Then a file that no import waits for is nobody's: its upload was cut off."""


def path_of(import_id: UUID | str) -> Path:
    """Return where the file of an import is, or was."""
    return Path(settings.IMPORTS_DIR) / str(import_id)


def keep(chunks: Iterable[bytes], *, import_id: UUID) -> Digest:
    """Write an upload where only this user of the system reads it, and return its digests.

    :raises FileRefused: when it is too large; nothing is kept.
    """
    path = path_of(import_id)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            digest = save(chunks, to=file)
            file.flush()
            os.fsync(file.fileno())  # the import outlives a power failure, so must its file
    except BaseException:
        discard(import_id)
        raise
    return digest


def discard(import_id: UUID | str) -> None:
    """Remove the file of an import, if it is there."""
    path_of(import_id).unlink(missing_ok=True)


def sweep(*, now: datetime) -> int:
    """Remove files that no import waits for any more; return how many."""
    found = [path for path in _files() if _age(path, now) > FORGOTTEN_AFTER]
    waiting = set(map(str, Import.objects.unfinished().values_list("pk", flat=True)))
    forgotten = [path for path in found if path.name not in waiting]
    for path in forgotten:
        path.unlink(missing_ok=True)
    return len(forgotten)


def _files() -> Iterator[Path]:
    directory = Path(settings.IMPORTS_DIR)
    return (path for path in directory.iterdir() if _is_id(path.name)) if directory.is_dir() else iter(())


def _is_id(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False


def _age(path: Path, now: datetime) -> timedelta:
    try:
        return timedelta(seconds=now.timestamp() - path.stat().st_mtime)
    except FileNotFoundError:
        return timedelta(0)
