"""What was sent to whom, and the windows in which it is not sent again."""

from datetime import timedelta
from typing import ClassVar, Final, Self

from django.conf import settings
from django.db import models
from django.db.models import Case, F, Q, Value, When
from django.utils.translation import gettext_lazy as _

from idempotency.dialects import Clock, Later
from idempotency.transitions import TransitionQuerySet
from shop.fields import CodeField

from .phones import masked


class Channel(models.TextChoices):
    """How it gets there."""

    SMS = "sms", _("SMS")
    EMAIL = "email", _("e-mail")


class Kind(models.TextChoices):
    """Why it is sent, which decides what counts as the same."""

    PLAIN = "", _("not said")
    VERIFICATION = "verification", _("verification code")
    NOTIFICATION = "notification", _("notification")
    MARKETING = "marketing", _("marketing")
    RECEIPT = "receipt", _("the shop's own receipt")


ASKABLE: Final = (Kind.VERIFICATION, Kind.NOTIFICATION, Kind.MARKETING)
"""What a client may name. The shop's own have windows of their own, which nobody else can take."""


class MessageStatus(models.TextChoices):
    """What is known of a message."""

    SENDING = "SENDING", _("asked for, no answer yet")
    UNKNOWN = "UNKNOWN", _("perhaps sent: the provider did not answer")
    SENT = "SENT", _("sent")
    FAILED = "FAILED", _("not sent, for certain")


UNSETTLED: Final = (MessageStatus.SENDING, MessageStatus.UNKNOWN)

LATE: Final = timedelta(minutes=10)
"""So long after the attempt the provider is asked in any case, to know what became of it."""


class MessageQuerySet(TransitionQuerySet["Message"]):
    """Messages, and the moves that their status may make: after a failed one the next is a new one."""

    moves: ClassVar = {
        MessageStatus.SENDING: {MessageStatus.UNKNOWN, MessageStatus.SENT, MessageStatus.FAILED},
        MessageStatus.UNKNOWN: {MessageStatus.SENT, MessageStatus.FAILED},
    }

    def unsettled(self) -> Self:
        """Those of which it is not known what became of them."""
        return self.filter(status__in=UNSETTLED)

    def worth_asking(self) -> Self:
        """Those whose answer still decides something: the window is open, or the attempt was just now.

        ``NOTIFICATIONS_UNKNOWN_AGE`` bounds it where a window never ends. What nobody has asked about stays.
        """
        is_open = Q(window__isnull=False, window__ends_at=None) | Q(window__ends_at__gt=Clock())
        is_late = Q(attempted_at__gt=Later(-LATE))
        is_recent = Q(attempted_at__gt=Later(-settings.NOTIFICATIONS_UNKNOWN_AGE))
        return self.filter(Q(status=MessageStatus.SENDING) | is_recent & (is_open | is_late))

    def numbered(self, number: str) -> Self:
        """The one of this number."""
        return self.filter(number=number)

    def locked(self) -> "Message":
        """Return the one row, locked until the end of the transaction."""
        return self.select_for_update().get()


class Message(models.Model):
    """One text or mail to one recipient. The row is there before the provider is asked."""

    number = CodeField(_("number"), max_length=40, unique=True, help_text=_("our own"))
    channel = models.CharField(_("channel"), max_length=5, choices=Channel.choices, default=Channel.SMS)
    recipient = models.CharField(_("recipient"), max_length=254)
    template = CodeField(_("template"), max_length=64)
    kind = models.CharField(_("kind"), max_length=12, choices=Kind.choices, blank=True)
    biz_id = CodeField(_("business number"), max_length=64, blank=True)
    campaign_id = CodeField(_("campaign"), max_length=64, blank=True)
    status = models.CharField(
        _("status"), max_length=7, choices=MessageStatus.choices, default=MessageStatus.SENDING
    )
    failure = models.CharField(_("why not"), max_length=32, blank=True)
    provider_key = CodeField(
        _("provider key"), max_length=64, null=True, blank=True, help_text=_("what we asked under")
    )
    provider_no = CodeField(
        _("provider's number"), max_length=255, blank=True, help_text=_("what they call it")
    )
    created_at = models.DateTimeField(_("created at"))
    attempted_at = models.DateTimeField(_("last send attempt at"), null=True, blank=True)
    sent_at = models.DateTimeField(_("sent at"), null=True, blank=True)

    objects = MessageQuerySet.as_manager()

    class Meta:
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        constraints = [
            models.UniqueConstraint(fields=["provider_key"], name="notifications_key_once"),
            models.CheckConstraint(
                condition=Q(status__in=MessageStatus.values), name="notifications_status_known"
            ),
            models.CheckConstraint(
                condition=Q(channel__in=Channel.values), name="notifications_channel_known"
            ),
            models.CheckConstraint(condition=Q(kind__in=Kind.values), name="notifications_kind_known"),
            models.CheckConstraint(
                condition=Q(status=MessageStatus.SENT, sent_at__isnull=False)
                | (~Q(status=MessageStatus.SENT) & Q(sent_at__isnull=True)),
                name="notifications_sent_has_time",
            ),
            models.CheckConstraint(
                condition=(Q(status=MessageStatus.FAILED) & ~Q(failure=""))
                | (~Q(status=MessageStatus.FAILED) & Q(failure="")),
                name="notifications_failed_says_why",
            ),
        ]
        indexes = [models.Index(fields=["status"], name="notifications_status")]

    def __str__(self) -> str:
        return f"{self.number} {self.status}"

    @property
    def masked_recipient(self) -> str:
        """The recipient as logs and lists may show it."""
        return masked(self.recipient)


class WindowQuerySet(models.QuerySet["Window"]):
    """Windows; each move is one statement, and the database's clock says what has ended."""

    def looked_at(self) -> Self:
        """Let each row tell ``is_open``."""
        is_open = When(Q(ends_at__isnull=True) | Q(ends_at__gt=Clock()), then=Value(1))
        return self.annotate(is_open=Case(is_open, default=Value(0), output_field=models.IntegerField()))

    def take_over(self, window: "Window", *, message: Message) -> bool:
        """Give a window that has ended to a new message; of rivals one gets it."""
        ended = self.filter(pk=window.pk, message_id=window.message_id, ends_at__lte=Clock())
        return bool(ended.update(message=message))

    def free(self, message: Message) -> None:
        """End the window now, if it is still this message's: nothing was sent."""
        self.filter(message=message).update(ends_at=F("opened_at"))


class Window(models.Model):
    """The time in which one text is not sent again; whoever asks for it finds the message that is there.

    The row stays for the next time. Its unique key is what makes rivals one.
    """

    key = CodeField(_("key"), max_length=480, unique=True)
    message = models.OneToOneField(Message, models.PROTECT, related_name="window", verbose_name=_("message"))
    opened_at = models.DateTimeField(_("opened at"), help_text=_("the send attempt, by the database's clock"))
    ends_at = models.DateTimeField(_("ends at"), null=True, blank=True, help_text=_("empty: never"))

    objects = WindowQuerySet.as_manager()

    class Meta:
        verbose_name = _("window")
        verbose_name_plural = _("windows")

    def __str__(self) -> str:
        return str(self.message_id)


class Contact(models.Model):
    """Where a customer can be reached."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="contact", verbose_name=_("user")
    )
    phone = models.CharField(_("telephone"), max_length=32, blank=True)
    email = models.EmailField(_("e-mail"), blank=True)

    class Meta:
        verbose_name = _("contact")
        verbose_name_plural = _("contacts")

    def __str__(self) -> str:
        return str(self.user_id)
