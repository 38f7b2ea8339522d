"""Files that were uploaded, how far each is, and what was found in its lines."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final
from uuid import uuid4

from django.conf import settings
from django.db import IntegrityError, models, transaction
from django.db.models import F, Q
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from idempotency import conf
from idempotency.exceptions import OperationInProgress
from idempotency.transitions import TransitionQuerySet
from orders.models import Order
from shop.fields import CodeField
from shop.querysets import first_seen

COUNTS: Final = ("created", "updated", "unchanged", "skipped", "rejected")
"""What can become of a line. Together they are as many as the lines that were handled."""


class Mode(models.TextChoices):
    """What a file is for."""

    BATCH = "batch", _("batch: new orders")
    INCREMENTAL = "incremental", _("incremental: what is new since the last file")
    UPDATE = "update", _("update: corrections of known orders")


class Status(models.TextChoices):
    """Where an import stands."""

    QUEUED = "queued", _("queued")
    RUNNING = "running", _("running")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")


UNFINISHED: Final = (Status.QUEUED, Status.RUNNING)


class ImportQuerySet(TransitionQuerySet["Import"]):
    """Imports, and the moves that their status may make."""

    moves: ClassVar = {
        Status.QUEUED: {Status.RUNNING, Status.CANCELLED},
        Status.RUNNING: {Status.DONE, Status.FAILED, Status.CANCELLED},
    }

    def create_or_get(self, *, dedup_key: str, **values: Any) -> tuple["Import", bool]:
        """Insert an import, or return the one that has these bytes already: the unique index decides.

        :returns: the import, and ``True`` when this call inserted it.
        :raises OperationInProgress: when a rival's is not visible yet, or has just ended for nothing.
        """
        try:
            with transaction.atomic(using=self.db):  # a savepoint: the conflict leaves the rest usable
                return self.create(dedup_key=dedup_key, **values), True
        except IntegrityError as error:
            if rival := first_seen(self.filter(dedup_key=dedup_key)):
                return rival, False
            raise OperationInProgress(conf.get("RETRY_AFTER")) from error

    def unfinished(self) -> "ImportQuerySet":
        """Those that somebody works on, or should."""
        return self.filter(status__in=UNFINISHED)

    def advance(self, *, reached: int, counts: Mapping[str, int], noted: int, now: datetime) -> None:
        """Note that all lines up to ``reached`` are handled, in the transaction that handled them."""
        more = {name: F(name) + counts.get(name, 0) for name in COUNTS}
        self.update(reached=reached, noted=F("noted") + noted, attempts=0, moved_at=now, **more)

    def nudge(self, *, before: datetime, now: datetime) -> bool:
        """Note that somebody is sent to those that stand still since ``before``; one caller gets ``True``."""
        return bool(self.unfinished().filter(moved_at__lt=before).update(moved_at=now))


class Import(models.Model):
    """One file of one user. Its status changes only by ``transition()``."""

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="imports", verbose_name=_("user")
    )
    mode = models.CharField(_("mode"), max_length=11, choices=Mode.choices)
    period = CodeField(_("period"), max_length=32, blank=True, default="")
    file_name = models.CharField(_("file name"), max_length=255)
    md5 = CodeField("MD5", max_length=32)
    sha256 = CodeField("SHA-256", max_length=64)
    size = models.PositiveBigIntegerField(_("size in bytes"))
    dedup_key = CodeField(
        _("what it blocks"),
        max_length=120,
        unique=True,
        null=True,
        blank=True,
        help_text=_("another upload of the same bytes; empty once it ended for nothing"),
    )
    status = models.CharField(_("status"), max_length=9, choices=Status.choices, default=Status.QUEUED)
    reasons = models.JSONField(_("why it failed"), default=dict, blank=True)
    reached = models.PositiveIntegerField(_("lines handled up to"), default=0)
    total = models.PositiveIntegerField(_("lines with data"))
    created = models.PositiveIntegerField(_("created"), default=0)
    updated = models.PositiveIntegerField(_("updated"), default=0)
    unchanged = models.PositiveIntegerField(_("unchanged"), default=0)
    skipped = models.PositiveIntegerField(_("skipped"), default=0)
    rejected = models.PositiveIntegerField(_("rejected"), default=0)
    noted = models.PositiveIntegerField(_("findings kept"), default=0)
    attempts = models.PositiveIntegerField(
        _("attempts"), default=0, help_text=_("begun since the last progress")
    )
    created_at = models.DateTimeField(_("uploaded at"))
    moved_at = models.DateTimeField(_("last progress at"), db_index=True)
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)

    objects = ImportQuerySet.as_manager()

    class Meta:
        verbose_name = _("import")
        verbose_name_plural = _("imports")
        constraints = [
            models.CheckConstraint(condition=Q(status__in=Status.values), name="imports_status_known"),
            models.CheckConstraint(condition=Q(mode__in=Mode.values), name="imports_mode_known"),
            models.CheckConstraint(
                condition=Q(dedup_key__isnull=True) | ~Q(status__in=[Status.FAILED, Status.CANCELLED]),
                name="imports_nothing_blocks_nothing",
            ),
        ]

    def __str__(self) -> str:
        return self.file_name

    @property
    def imported_count(self) -> int:
        """Orders that this file made or changed."""
        return self.created + self.updated

    @property
    def handled(self) -> int:
        """Lines that are handled so far."""
        return sum(getattr(self, name) for name in COUNTS)

    @property
    def is_finished(self) -> bool:
        """Whether nobody will work on it any more."""
        return self.status not in UNFINISHED

    @property
    def percent(self) -> int:
        """How much is handled, from 0 to 100."""
        if self.status == Status.DONE:
            return 100
        return 100 * self.handled // self.total

    @property
    def reason(self) -> str:
        """Why it failed, in the reader's language."""
        return spoken(self.reasons)

    @property
    def cart_id(self) -> str:
        """What its orders name as the cart that they came from."""
        return f"import:{self.pk}"

    def stands_still(self, *, lease: timedelta, now: datetime) -> bool:
        """Whether whoever works on it may have died."""
        return not self.is_finished and self.moved_at < now - lease


class Finding(models.Model):
    """One line that was not taken, and why."""

    class Kind(models.TextChoices):
        """What became of the line."""

        REJECTED = "rejected", _("rejected")
        REPEATED = "repeated", _("skipped: it repeats an earlier line")

    source = models.ForeignKey(Import, models.CASCADE, related_name="findings", verbose_name=_("import"))
    kind = models.CharField(_("kind"), max_length=8, choices=Kind.choices)
    line = models.PositiveIntegerField(_("line"))
    column = models.CharField(_("column"), max_length=64, blank=True)
    code = models.CharField(_("code"), max_length=40)
    reasons = models.JSONField(_("reason"))
    order_no = models.CharField(_("order number"), max_length=64, blank=True)

    class Meta:
        verbose_name = _("finding")
        verbose_name_plural = _("findings")
        constraints = [models.UniqueConstraint(fields=["source", "line"], name="imports_finding_per_line")]

    def __str__(self) -> str:
        return f"{self.line}: {self.code}"

    @property
    def reason(self) -> str:
        """Why, in the reader's language."""
        return spoken(self.reasons)


class AppliedUpdate(models.Model):
    """These bytes have corrected this order: the same file never does it again, whatever came between."""

    order = models.ForeignKey(Order, models.CASCADE, related_name="+", verbose_name=_("order"))
    md5 = CodeField("MD5", max_length=32)

    class Meta:
        verbose_name = _("applied update")
        verbose_name_plural = _("applied updates")
        constraints = [models.UniqueConstraint(fields=["order", "md5"], name="imports_update_once")]

    def __str__(self) -> str:
        return f"{self.order_id} {self.md5}"


def spoken(texts: Mapping[str, str]) -> str:
    """Return the text in the reader's language, or the first there is."""
    return texts.get(get_language() or "") or next(iter(texts.values()), "")
