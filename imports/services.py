"""Take a file, once for each user, mode, content and period; and go on with what was cut off."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction

from idempotency.outbox import publish

from . import storing
from .models import Import, Mode
from .reading.digest import Digest
from .reading.repeats import read_checked

logger = logging.getLogger("imports")

QUEUED: Final = "imports.queued"
"""The topic of the outbox that sends a worker to an import."""

NAME_LENGTH: Final = 255


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What became of an upload."""

    source: Import
    is_first: bool
    """Whether this upload began the import, rather than found one of the same bytes."""

    is_small: bool
    """Whether the caller runs it at once; a large one was queued."""


def receive(
    *,
    user_id: int,
    mode: Mode,
    period: str,
    file_name: str,
    chunks: Iterable[bytes],
    now: datetime,
    queue: bool = True,
) -> Receipt:
    """Keep an upload and queue its import, unless the user has one of the same bytes that counts.

    However many uploads come at once, one of them begins an import; a known file is not read. ``queue=False``
    leaves a large file, too, to the caller.

    :raises FileRefused: when the file as a whole cannot be imported; nothing is kept of it.
    :raises OperationInProgress: when a rival's import of the same bytes has not been committed yet.
    """
    import_id = uuid4()
    with _kept(chunks, import_id) as digest:
        dedup_key = dedup_key_of(user_id=user_id, mode=mode, md5=digest.md5, period=period)
        if known := Import.objects.filter(dedup_key=dedup_key).first():
            receipt = Receipt(source=known, is_first=False, is_small=False)
        else:
            total = _count(storing.path_of(import_id), file_name)
            is_small = total <= settings.IMPORTS_AT_ONCE
            source, is_first = _begin(
                queue=queue and not is_small,
                dedup_key=dedup_key,
                id=import_id,
                user_id=user_id,
                mode=mode,
                period=period,
                file_name=file_name[-NAME_LENGTH:],
                md5=digest.md5,
                sha256=digest.sha256,
                size=digest.size,
                total=total,
                created_at=now,
                moved_at=now,
            )
            receipt = Receipt(source=source, is_first=is_first, is_small=is_small)
        if not receipt.is_first:
            storing.discard(import_id)
            go_on(receipt.source, now=now)
    return receipt


def dedup_key_of(*, user_id: int, mode: Mode, md5: str, period: str) -> str:
    """Return what two uploads have in common that are one: nobody learns of another user's files."""
    return ":".join([str(user_id), mode, md5, *([period] if mode == Mode.INCREMENTAL else [])])


def go_on(source: Import, *, now: datetime) -> bool:
    """Send a worker to an import that stands still since its lease; return whether this call did.

    What the worker before it has committed stays, and the lease keeps a second one out.
    """
    before = now - settings.IMPORTS_LEASE
    with transaction.atomic():
        if not Import.objects.filter(pk=source.pk).nudge(before=before, now=now):
            return False
        _publish(source)
    logger.info("import %s stood still: a worker is sent", source.pk)
    return True


def go_on_with_all(*, now: datetime) -> int:
    """Send workers to all imports that stand still; return to how many."""
    still = Import.objects.unfinished().filter(moved_at__lt=now - settings.IMPORTS_LEASE)
    return sum(go_on(source, now=now) for source in still.order_by("moved_at"))


@contextmanager
def _kept(chunks: Iterable[bytes], import_id: UUID) -> Iterator[Digest]:
    """Whatever goes wrong until the import is committed leaves no file."""
    digest = storing.keep(chunks, import_id=import_id)
    try:
        yield digest
    except BaseException:
        storing.discard(import_id)
        raise


def _count(path: Path, file_name: str) -> int:
    """Read a file as a whole, and return how many lines with data it has.

    :raises FileRefused: when the file as a whole cannot be imported.
    """
    with closing(read_checked(path, filename=file_name)) as items:
        return sum(1 for _item in items)


@transaction.atomic
def _begin(*, queue: bool, dedup_key: str, **values: object) -> tuple[Import, bool]:
    source, is_first = Import.objects.create_or_get(dedup_key=dedup_key, **values)
    if is_first and queue:
        _publish(source)
    return source, is_first


def _publish(source: Import) -> None:
    publish(QUEUED, {"import_id": str(source.pk)}, key=str(source.pk))
