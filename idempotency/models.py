"""What is kept: one row an operation, and one row a message."""

from datetime import timedelta
from typing import Self
from uuid import UUID, uuid4

from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.utils.translation import gettext_lazy as _

from .dialects import Clock, Later
from .fields import NameField


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


class MessageState(models.TextChoices):
    """Where a message stands. Nothing leads back from SENT and DROPPED."""

    PENDING = "PENDING", _("to be sent")
    SENT = "SENT", _("sent")
    DEAD = "DEAD", _("dead letter")
    DROPPED = "DROPPED", _("dropped")


class OutboxQuerySet(models.QuerySet["OutboxMessage"]):
    """What becomes of messages. Each verb is one statement, whose WHERE clause decides."""

    def pending(self) -> Self:
        return self.filter(state=MessageState.PENDING)

    def dead(self) -> Self:
        """Messages that were given up: for people to requeue or drop."""
        return self.filter(state=MessageState.DEAD)

    def due(self) -> Self:
        """Messages to be sent now, whether a relay holds them or not."""
        return self.filter(due_at__lte=Clock())

    def free(self) -> Self:
        """Messages that no relay holds: not leased, or not any more."""
        return self.filter(Q(leased_until=None) | Q(leased_until__lte=Clock()))

    def first_of_their_key(self) -> Self:
        """Messages without a key, and of each key the oldest that is unsent."""
        earlier = OutboxMessage.objects.filter(key=OuterRef("key"), pk__lt=OuterRef("pk"))
        # one state each: MariaDB looks a key up in the index only behind an equality
        pending = Exists(earlier.filter(state=MessageState.PENDING))
        dead = Exists(earlier.filter(state=MessageState.DEAD))
        return self.filter(Q(key="") | (~pending & ~dead))

    def held_by(self, token: UUID) -> Self:
        """Messages that are this relay's to send, and to settle, until somebody else has taken them over."""
        return self.pending().filter(token=token)

    def past_retention(self, retention: timedelta) -> Self:
        """Messages that were sent or dropped at least that long ago."""
        return self.filter(ended_at__lte=Later(-retention))

    def lease(self, token: UUID, span: timedelta) -> int:
        """Hold what is due and free."""
        return self.due().free().update(token=token, leased_until=Later(span))

    def mark_sent(self) -> int:
        return self._end(MessageState.SENT, error="")

    def put_off(self, span: timedelta) -> int:
        """Let nobody have them for so long. They stay due, so that their age tells of the trouble."""
        return self.update(token=None, leased_until=Later(span))

    def release(self) -> int:
        """Let any relay have them at once."""
        return self.update(token=None, leased_until=None)

    def mark_failed(self, error: str, *, again_after: timedelta) -> int:
        """Count a failure that is the message's own."""
        due_at = Later(again_after)
        return self.update(
            attempts=F("attempts") + 1, error=error, due_at=due_at, token=None, leased_until=None
        )

    def mark_dead(self, error: str) -> int:
        """Give up; the later messages of the key wait for somebody to decide."""
        attempts = F("attempts") + 1
        return self.update(
            state=MessageState.DEAD,
            attempts=attempts,
            error=error,
            due_at=None,
            token=None,
            leased_until=None,
        )

    def requeue(self) -> int:
        """Send the dead letters among these again, as if they were new; return how many there were."""
        return self.dead().update(state=MessageState.PENDING, attempts=0, due_at=Clock())

    def send_again(self) -> int:
        """Send those of these that were sent once more, after a broker lost messages; return how many.

        It does no harm to what was not lost: the ids are the same, and whoever receives one twice drops it.
        """
        sent = self.filter(state=MessageState.SENT)
        return sent.update(state=MessageState.PENDING, attempts=0, due_at=Clock(), ended_at=None)

    def drop(self) -> int:
        """Never send the dead letters among these, and free their keys; return how many there were."""
        return self.dead()._end(MessageState.DROPPED)

    def _end(self, state: MessageState, **columns: str) -> int:
        return self.update(
            state=state, ended_at=Clock(), due_at=None, token=None, leased_until=None, **columns
        )


class OutboxMessage(models.Model):
    """A fact that others must hear of, committed together with the change that made it true.

    Its times are the database's. ``due_at`` is set while the message is to be sent, and then alone: the
    index on it stays as small as the work that is left, however many messages were sent.
    """

    id = models.BigAutoField(primary_key=True)
    message_id = models.UUIDField(_("message id"), unique=True, default=uuid4, editable=False)
    topic = NameField(_("topic"), max_length=255)
    key = NameField(
        _("key"), max_length=255, blank=True, help_text=_("messages of one key are sent in order")
    )
    payload = models.TextField(_("payload"))
    state = models.CharField(
        _("state"), max_length=7, choices=MessageState.choices, default=MessageState.PENDING
    )
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    error = models.CharField(_("error"), max_length=255, blank=True)
    due_at = models.DateTimeField(_("due at"), null=True)
    token = models.UUIDField(_("token"), null=True, help_text=_("fences off a late owner"))
    leased_until = models.DateTimeField(_("leased until"), null=True)
    created_at = models.DateTimeField(_("created at"))
    ended_at = models.DateTimeField(_("ended at"), null=True, help_text=_("when it was sent or dropped"))

    objects = OutboxQuerySet.as_manager()

    class Meta:
        db_table = "idempotency_outbox"
        verbose_name = _("outbox message")
        verbose_name_plural = _("outbox messages")
        indexes = [
            models.Index(fields=["due_at", "id"], name="idempotency_outbox_due"),
            models.Index(fields=["state", "key", "id"], name="idempotency_outbox_order"),
            models.Index(fields=["ended_at"], name="idempotency_outbox_ended"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(state=MessageState.PENDING, due_at__isnull=False)
                | Q(state__in=["SENT", "DEAD", "DROPPED"], due_at__isnull=True),
                name="idempotency_outbox_due_while_pending",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.topic} {self.message_id}"
