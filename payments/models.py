"""Money that came in for an order, and money that went back."""

from datetime import datetime
from typing import ClassVar, Final, Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

from idempotency.transitions import TransitionQuerySet
from orders.models import Order
from shop.fields import CodeField
from shop.money import MINOR_DIGITS, decimal_string


class PaymentStatus(models.TextChoices):
    """What is known of a payment."""

    PROCESSING = "PROCESSING", _("asked for, no answer yet")
    SUCCEEDED = "SUCCEEDED", _("succeeded")
    FAILED = "FAILED", _("failed")
    REFUND_DUE = "REFUND_DUE", _("to be given back")
    REFUNDED = "REFUNDED", _("given back")


class PaymentQuerySet(TransitionQuerySet["Payment"]):
    """Payments, and the moves that their status may make: never back, and a charge is never forgotten."""

    moves: ClassVar = {
        PaymentStatus.PROCESSING: {
            PaymentStatus.SUCCEEDED,
            PaymentStatus.FAILED,
            PaymentStatus.REFUND_DUE,
        },
        # A number that failed may succeed: the buyer tried again at the provider's.
        PaymentStatus.FAILED: {PaymentStatus.SUCCEEDED, PaymentStatus.REFUND_DUE},
        PaymentStatus.REFUND_DUE: {PaymentStatus.REFUNDED},
    }


class Payment(models.Model):
    """One charge of one order at one provider. The row is there before the provider is asked."""

    order = models.ForeignKey(Order, models.PROTECT, related_name="payments", verbose_name=_("order"))
    provider = models.CharField(_("provider"), max_length=16)
    provider_key = CodeField(
        _("provider key"), max_length=64, null=True, blank=True, help_text=_("what we asked under")
    )
    provider_payment_no = CodeField(
        _("provider's number"),
        max_length=64,
        null=True,
        blank=True,
        help_text=_("what they call it"),
    )
    status = models.CharField(
        _("status"), max_length=10, choices=PaymentStatus.choices, default=PaymentStatus.PROCESSING
    )
    amount_minor = models.PositiveBigIntegerField(_("amount in minor units"))
    currency = models.CharField(_("currency"), max_length=3)
    created_at = models.DateTimeField(_("created at"))
    paid_at = models.DateTimeField(_("paid at"), null=True, blank=True)
    returned_at = models.DateTimeField(_("given back at"), null=True, blank=True)

    objects = PaymentQuerySet.as_manager()

    class Meta:
        verbose_name = _("payment")
        verbose_name_plural = _("payments")
        constraints = [
            models.UniqueConstraint(fields=["provider", "provider_payment_no"], name="payments_number_once"),
            models.UniqueConstraint(fields=["provider", "provider_key"], name="payments_key_once"),
            models.CheckConstraint(
                condition=Q(status__in=PaymentStatus.values), name="payments_status_known"
            ),
            models.CheckConstraint(condition=Q(amount_minor__gte=1), name="payments_amount_positive"),
            models.CheckConstraint(
                condition=Q(status__in=[PaymentStatus.PROCESSING, PaymentStatus.FAILED])
                | Q(provider_payment_no__isnull=False, paid_at__isnull=False),
                name="payments_charged_has_number",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.order_id} {self.provider} {self.status}"

    @property
    def amount(self) -> str:
        """The amount as a decimal string."""
        return decimal_string(amount_minor=self.amount_minor, currency=self.currency)


class RefundStatus(models.TextChoices):
    """What is known of a refund."""

    PROCESSING = "PROCESSING", _("asked for, no answer yet")
    SUCCEEDED = "SUCCEEDED", _("succeeded")
    FAILED = "FAILED", _("failed")


class RefundQuerySet(TransitionQuerySet["Refund"]):
    """Refunds, and the moves that their status may make."""

    moves: ClassVar = {
        RefundStatus.PROCESSING: {RefundStatus.SUCCEEDED, RefundStatus.FAILED},
        RefundStatus.FAILED: {RefundStatus.PROCESSING},
    }


class Refund(models.Model):
    """Money of one payment that goes back, in part or in full, under a number of the shop's own."""

    order = models.ForeignKey(Order, models.PROTECT, related_name="refunds", verbose_name=_("order"))
    refund_no = CodeField(_("refund number"), max_length=64)
    provider_refund_no = CodeField(_("provider's number"), max_length=64, null=True, blank=True)
    status = models.CharField(
        _("status"), max_length=10, choices=RefundStatus.choices, default=RefundStatus.PROCESSING
    )
    amount_minor = models.PositiveBigIntegerField(_("amount in minor units"))
    currency = models.CharField(_("currency"), max_length=3)
    created_at = models.DateTimeField(_("created at"))
    refunded_at = models.DateTimeField(_("refunded at"), null=True, blank=True)

    objects = RefundQuerySet.as_manager()

    class Meta:
        verbose_name = _("refund")
        verbose_name_plural = _("refunds")
        constraints = [
            models.UniqueConstraint(fields=["order", "refund_no"], name="payments_refund_once"),
            models.CheckConstraint(condition=Q(status__in=RefundStatus.values), name="payments_refund_known"),
            models.CheckConstraint(condition=Q(amount_minor__gte=1), name="payments_refund_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.order_id} {self.refund_no}"

    @property
    def amount(self) -> str:
        """The amount as a decimal string."""
        return decimal_string(amount_minor=self.amount_minor, currency=self.currency)


class NoticeKind(models.TextChoices):
    """What a provider tells."""

    PAID = "PAID", _("paid")
    FAILED = "FAILED", _("failed attempt")
    REFUNDED = "REFUNDED", _("refunded")
    OTHER = "OTHER", _("something else")


class Fate(models.TextChoices):
    """What became of a notice."""

    APPLIED = "APPLIED", _("applied")
    NOTHING_NEW = "NOTHING_NEW", _("nothing new")
    LATE = "LATE", _("too late: the order has moved on")
    REFUND_DUE = "REFUND_DUE", _("paid, to be given back")
    PARKED = "PARKED", _("refund that waits for its payment")
    UNMATCHED = "UNMATCHED", _("no such order")
    MISMATCHED = "MISMATCHED", _("another amount or currency")
    FOREIGN = "FOREIGN", _("somebody else's account")


WAITING: Final = (Fate.PARKED, Fate.UNMATCHED)
"""Applied as soon as their order or payment is there."""


class NoticeQuerySet(models.QuerySet["Notice"]):
    """Notices; they are written by ``payments.notices`` only."""

    def waiting(self) -> Self:
        """Those that can be applied as soon as their order or payment is there."""
        return self.filter(fate__in=WAITING)

    def settled_before(self, moment: datetime) -> Self:
        """Those that wait for nothing, and have not since before ``moment``."""
        settled_at = Coalesce("settled_at", "received_at")
        return self.exclude(fate__in=WAITING).annotate(at=settled_at).filter(at__lt=moment)


class Notice(models.Model):
    """What a provider has told about a payment, once by its number, and what became of it."""

    provider = models.CharField(_("provider"), max_length=16)
    event_no = CodeField(_("event number"), max_length=255, help_text=_("the provider's"))
    event_type = models.CharField(_("event type"), max_length=64)
    kind = models.CharField(_("kind"), max_length=8, choices=NoticeKind.choices)
    order_no = CodeField(_("order number"), max_length=64, blank=True)
    payment_no = CodeField(_("payment number"), max_length=64, blank=True)
    refund_no = CodeField(_("refund number"), max_length=64, blank=True)
    provider_refund_no = CodeField(_("provider's refund number"), max_length=64, blank=True)
    amount_minor = models.PositiveBigIntegerField(_("amount in minor units"))
    is_total = models.BooleanField(
        _("running total"), default=False, help_text=_("the amount is all that was given back so far")
    )
    currency = models.CharField(_("currency"), max_length=64, blank=True)
    happened_at = models.DateTimeField(_("happened at"), null=True, blank=True)
    fate = models.CharField(_("what became of it"), max_length=11, choices=Fate.choices)
    expected_minor = models.PositiveBigIntegerField(_("expected, in minor units"), null=True, blank=True)
    expected_currency = models.CharField(_("expected currency"), max_length=3, blank=True)
    content = models.TextField(
        _("content"), blank=True, help_text=_("as it was told, verified and decrypted; emptied by a purge")
    )
    received_at = models.DateTimeField(_("received at"))
    settled_at = models.DateTimeField(
        _("settled at"), null=True, blank=True, help_text=_("where it had to wait")
    )

    objects = NoticeQuerySet.as_manager()

    class Meta:
        verbose_name = _("notice")
        verbose_name_plural = _("notices")
        constraints = [
            models.UniqueConstraint(fields=["provider", "event_no"], name="payments_notice_once"),
            models.CheckConstraint(
                condition=Q(kind__in=NoticeKind.values), name="payments_notice_kind_known"
            ),
            models.CheckConstraint(condition=Q(fate__in=Fate.values), name="payments_notice_fate_known"),
        ]
        indexes = [
            models.Index(fields=["order_no"], name="payments_notice_order"),
            models.Index(fields=["fate"], name="payments_notice_fate"),
        ]

    def __str__(self) -> str:
        return f"{self.provider} {self.event_no}"

    @property
    def amount(self) -> str:
        """What was told, for people."""
        return _spelled(self.amount_minor, self.currency)

    @property
    def expected(self) -> str:
        """What the order says, for people; empty where it was not compared or was the same."""
        return "" if self.expected_minor is None else _spelled(self.expected_minor, self.expected_currency)


def _spelled(amount_minor: int, currency: str) -> str:
    """Spell an amount; one of a currency that the shop does not know stays in minor units."""
    if currency not in MINOR_DIGITS:
        return f"{amount_minor} {currency}".strip()
    return f"{decimal_string(amount_minor=amount_minor, currency=currency)} {currency}"
