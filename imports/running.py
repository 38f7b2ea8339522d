"""Work through a file, chunk by chunk, each line once.

take the lease ──somebody has it──► OperationInProgress
  │
read ──the file cannot be read (any more)──► failed
  │
chunk of lines: fence, look whether it is cancelled, orders and stock, findings, progress mark ── one commit
  │    └─ killed ──► the next taker goes on behind the mark
  ▼
done
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from datetime import datetime, timedelta
from functools import partial
from itertools import dropwhile, islice
from typing import Any, Final

from django.conf import settings
from django.db.models import F
from django.utils import timezone, translation
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from idempotency.decorators import idempotent
from idempotency.exceptions import OperationInProgress
from idempotency.leased import Claim
from idempotency.transitions import InvalidTransition

from . import storing
from .applying import Item, Tally, apply
from .exceptions import ImportStopped
from .models import Finding, Import, Status
from .reading.refusals import FileRefused
from .reading.repeats import read_checked

logger = logging.getLogger("imports")

MOST_ATTEMPTS: Final = 10
"""Attempts in a row that get nowhere, until an import has failed."""

RIVALRIES: Final = 5
"""How often a chunk begins anew because a rival made one of its orders."""

FILE_LOST: Final = _("The uploaded file is not there any more.")
GIVEN_UP: Final = _("It was cut off too often without getting on.")

Watch = Callable[[Import], None]


@idempotent(
    "imports.run",
    key="import_id",
    lease=settings.IMPORTS_LEASE,
    retention=None,
    fingerprint=None,
    wait=timedelta(0),
)
def run_import(*, import_id: str, claim: Claim, watch: Watch = lambda source: None) -> dict[str, Any]:
    """Import the file of ``import_id``, or what is left of it. ``watch`` is shown each step of progress.

    :returns: ``status``: how it ended.
    :raises OperationInProgress: when somebody works on it now.
    :raises ClaimLost: when a successor took over; the chunk that was not committed is rolled back.
    """
    ending = _ending(import_id, claim, watch)
    ended: dict[str, Any] = claim.complete(ending)
    storing.discard(import_id)
    watch(Import.objects.get(pk=import_id))
    return ended


def _ending(import_id: str, claim: Claim, watch: Watch) -> Callable[[], dict[str, Any]]:
    """Do the work; return what ends it."""
    try:
        _work(_begun(import_id), claim, watch)
    except (ImportStopped, InvalidTransition):
        return partial(_as_it_is, import_id)
    except FileRefused as refusal:
        return partial(_fail, import_id, refusal.reason)
    except FileNotFoundError:
        return partial(_fail, import_id, FILE_LOST)
    except _GivenUp:
        return partial(_fail, import_id, GIVEN_UP)
    return partial(_finish, import_id)


class _GivenUp(Exception):
    """Attempt after attempt ended without progress."""


def _begun(import_id: str) -> Import:
    rows = Import.objects.filter(pk=import_id)
    rows.transition(to=Status.RUNNING)
    rows.update(attempts=F("attempts") + 1)
    source = rows.get()
    if source.attempts > MOST_ATTEMPTS:
        raise _GivenUp
    return source


def _work(source: Import, claim: Claim, watch: Watch) -> None:
    with closing(read_checked(storing.path_of(source.pk), filename=source.file_name)) as items:
        left = dropwhile(lambda item: item.number <= source.reached, items)
        for chunk in chunks(left, size=settings.IMPORTS_CHUNK):
            _handle(source, chunk, claim)
            source.refresh_from_db()
            watch(source)


def chunks(items: Iterable[Item], *, size: int) -> Iterator[Sequence[Item]]:
    """Yield ``size`` items at a time."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def _handle(source: Import, chunk: Sequence[Item], claim: Claim) -> None:
    for _attempt in range(RIVALRIES):
        try:
            return claim.step(f"after {source.reached}", partial(_commit, source, chunk))
        except OperationInProgress:  # the next attempt sees what the rival has made
            continue
    return claim.step(f"after {source.reached}", partial(_commit, source, chunk))


def _commit(source: Import, chunk: Sequence[Item]) -> None:
    row = Import.objects.filter(pk=source.pk)
    present = row.select_for_update().get()
    if present.status != Status.RUNNING or present.reached != source.reached:
        raise ImportStopped
    now = timezone.now()
    tally = apply(source=present, items=chunk, now=now)
    noted = _note(present, tally)
    row.advance(reached=chunk[-1].number, counts=tally.counts, noted=noted, now=now)


def _note(source: Import, tally: Tally) -> int:
    """Keep what was found, up to the limit; return how many were kept."""
    room = max(0, settings.IMPORTS_FINDINGS - source.noted)
    findings = list(islice(_findings(source, tally), room))
    Finding.objects.bulk_create(findings)
    return len(findings)


def _findings(source: Import, tally: Tally) -> Iterator[Finding]:
    for rejection in tally.rejections:
        yield Finding(
            source=source,
            kind=Finding.Kind.REJECTED,
            line=rejection.number,
            column=rejection.column,
            code=rejection.code,
            reasons=in_each_language(rejection.reason),
            order_no=rejection.order_no[:64],
        )
    for repeat in tally.repeats:
        text = format_lazy(_("It repeats line {line} and was skipped."), line=repeat.first_number)
        yield Finding(
            source=source,
            kind=Finding.Kind.REPEATED,
            line=repeat.number,
            code="repeated",
            reasons=in_each_language(text),
            order_no=repeat.order_no[:64],
        )


def in_each_language(text: object) -> dict[str, str]:
    """Spell a lazy text in all the shop's languages: who reads it is not known yet."""
    texts = {}
    for code, _name in settings.LANGUAGES:
        with translation.override(code):
            texts[code] = str(text)
    return texts


def _finish(import_id: str) -> dict[str, Any]:
    row = Import.objects.filter(pk=import_id)
    blocks = {} if row.select_for_update().get().imported_count else {"dedup_key": None}
    return _end(import_id, to=Status.DONE, **blocks)


def _fail(import_id: str, reason: object) -> dict[str, Any]:
    return _end(import_id, to=Status.FAILED, dedup_key=None, reasons=in_each_language(reason))


def _end(import_id: str, **values: Any) -> dict[str, Any]:
    try:
        Import.objects.filter(pk=import_id).transition(finished_at=timezone.now(), **values)
    except InvalidTransition:  # somebody has cancelled it
        return _as_it_is(import_id)
    logger.info("import %s: %s", import_id, values["to"])
    return {"status": str(values["to"])}


def _as_it_is(import_id: str) -> dict[str, Any]:
    return {"status": Import.objects.get(pk=import_id).status}


def run_now(source: Import) -> None:
    """Import a small file while its uploader waits; a rival who was quicker does as well."""
    with suppress(OperationInProgress):
        run_import(import_id=str(source.pk))
    source.refresh_from_db()


def cancel(*, source: Import, now: datetime) -> bool:
    """Stop an import at its next chunk. What is done stays; the same bytes may come again.

    :returns: ``True`` when this call cancelled it, ``False`` when it was cancelled before.
    :raises InvalidTransition: when it is done, or has failed.
    """
    cancelled = Import.objects.filter(pk=source.pk).transition(
        to=Status.CANCELLED, dedup_key=None, finished_at=now
    )
    storing.discard(source.pk)
    return cancelled
