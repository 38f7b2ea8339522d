"""What is kept: one row an operation."""

from typing import Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from .dialects import Clock


class State(models.TextChoices):
    """Where an operation stands. An atomic one is seen by others only once it is completed."""

    IN_PROGRESS = "IN_PROGRESS", _("in progress")
    COMPLETED = "COMPLETED", _("completed")


class RecordQuerySet(models.QuerySet["IdempotencyRecord"]):
    """Questions about records; only the claims write them."""

    def live(self) -> Self:
        """Records that still answer repeats."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=Clock()))

    def unfinished(self) -> Self:
        """Leased operations whose lease has ended without an outcome: somebody should take them over."""
        return self.filter(state=State.IN_PROGRESS, leased_until__lte=Clock())

    def expired(self) -> Self:
        """Completed records that are as good as none."""
        return self.filter(state=State.COMPLETED, expires_at__lte=Clock())


class IdempotencyRecord(models.Model):
    """An operation and its outcome, committed together with the handler's own writes.

    The primary key is a digest of operation, scope and key and decides everything; the columns beside
    it are for people and hold at most their first 255 characters.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    operation = models.CharField(_("operation"), max_length=255)
    scope = models.CharField(_("scope"), max_length=255)
    key = models.CharField(_("key"), max_length=255)
    label = models.CharField(_("label"), max_length=255, help_text=_("the key as people know it"))
    fingerprint = models.BinaryField(_("fingerprint"), max_length=16, null=True)
    state = models.CharField(_("state"), max_length=11, choices=State.choices)
    status = models.PositiveSmallIntegerField(_("status"), null=True)
    headers = models.TextField(_("headers"))
    body = models.BinaryField(_("body"), null=True)
    operation_id = models.UUIDField(
        _("operation id"), null=True, help_text=_("what provider keys derive from")
    )
    steps = models.TextField(_("steps"), null=True, help_text=_("what the finished steps returned"))
    token = models.UUIDField(_("token"), null=True, help_text=_("fences off a late owner"))
    attempts = models.PositiveIntegerField(_("attempts"), null=True)
    leased_until = models.DateTimeField(_("leased until"), null=True)
    created_at = models.DateTimeField(_("created at"))
    completed_at = models.DateTimeField(_("completed at"), null=True)
    expires_at = models.DateTimeField(_("expires at"), null=True, help_text=_("empty: kept for ever"))

    objects = RecordQuerySet.as_manager()

    class Meta:
        db_table = "idempotency_record"
        verbose_name = _("idempotency record")
        verbose_name_plural = _("idempotency records")
        indexes = [
            models.Index(fields=["expires_at"], name="idempotency_expires"),
            models.Index(fields=["key"], name="idempotency_key", opclasses=["varchar_pattern_ops"]),
            models.Index(fields=["created_at"], name="idempotency_created"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=State.values), name="idempotency_state_known"),
        ]

    def __str__(self) -> str:
        return f"{self.operation} {self.label or self.key}"
