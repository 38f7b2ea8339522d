"""Articles, orders and their lines."""

from typing import Any, ClassVar, Final

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import IntegrityError, models, transaction
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from idempotency import conf
from idempotency.exceptions import OperationInProgress
from idempotency.transitions import TransitionQuerySet
from shop.fields import CodeField
from shop.money import MINOR_DIGITS, decimal_string
from shop.querysets import first_seen

HIGHEST_PRICE_MINOR: Final = 10**12
"""The largest order, 100 lines of 10,000 pieces, still is a whole number of 64 bits."""


class Article(models.Model):
    """What is sold, and for how much. How many are there is the stock's business."""

    sku = CodeField(_("SKU"), max_length=64, unique=True)
    name = models.CharField(_("name"), max_length=200)
    price_minor = models.PositiveBigIntegerField(
        _("price"),
        validators=[MinValueValidator(1), MaxValueValidator(HIGHEST_PRICE_MINOR)],
        help_text=_("in minor units: 1990 is 19.90 CNY"),
    )
    currency = models.CharField(_("currency"), max_length=3, choices=[(code, code) for code in MINOR_DIGITS])

    class Meta:
        verbose_name = _("article")
        verbose_name_plural = _("articles")
        constraints = [
            # nothing is for free: no provider charges 0
            models.CheckConstraint(
                condition=Q(price_minor__gte=1, price_minor__lte=HIGHEST_PRICE_MINOR),
                name="orders_price_can_be_charged",
            ),
            models.CheckConstraint(
                condition=Q(currency__in=list(MINOR_DIGITS)), name="orders_article_currency_known"
            ),
        ]

    def __str__(self) -> str:
        return self.sku


class Status(models.TextChoices):
    """Where an order stands."""

    PENDING = "PENDING", _("pending")
    PAID = "PAID", _("paid")
    SHIPPED = "SHIPPED", _("shipped")
    CANCELLED = "CANCELLED", _("cancelled")
    REFUNDED = "REFUNDED", _("refunded")


REFUNDABLE: Final = (Status.PAID, Status.SHIPPED)
PAID_ONCE: Final = (*REFUNDABLE, Status.REFUNDED)
"""Paid, whatever happened since."""


class OrderQuerySet(TransitionQuerySet["Order"]):
    """Orders, and the moves that their status may make."""

    moves: ClassVar = {
        Status.PENDING: {Status.PAID, Status.CANCELLED},
        Status.PAID: {Status.SHIPPED, Status.REFUNDED},
        Status.SHIPPED: {Status.REFUNDED},
    }

    def create_or_get(
        self, *, user_id: int, client_order_no: str | None, **values: Any
    ) -> tuple["Order", bool]:
        """Insert an order, or return the one that has the client's number already: the unique index decides.

        :returns: the order, and ``True`` when this call inserted it.
        :raises OperationInProgress: when a rival's order is not visible yet in this transaction's snapshot.
        """
        try:
            with transaction.atomic(using=self.db):  # a savepoint: the conflict leaves the rest usable
                return self.create(user_id=user_id, client_order_no=client_order_no, **values), True
        except IntegrityError as error:
            if client_order_no is None:
                raise
            if rival := first_seen(self.filter(user_id=user_id, client_order_no=client_order_no)):
                return rival, False
            raise OperationInProgress(conf.get("RETRY_AFTER")) from error

    def locked(self) -> "Order":
        """Return the one order of this QuerySet as it is now, and keep rivals out until the commit."""
        return self.select_for_update().get()

    def reserve_refund(self, *, amount_minor: int) -> bool:
        """Set ``amount_minor`` of a paid order aside to be given back; ``False`` when less is left."""
        left = self.filter(status__in=REFUNDABLE, amount_minor__gte=F("refunded_minor") + amount_minor)
        # The WHERE clause decides: two refunds at once never give back more than came in.
        return bool(left.update(refunded_minor=F("refunded_minor") + amount_minor))

    def release_refund(self, *, amount_minor: int) -> None:
        """Undo a reservation: the money stays here."""
        self.update(refunded_minor=F("refunded_minor") - amount_minor)


class Order(models.Model):
    """What one user bought. Its status changes only by ``transition()``."""

    order_no = CodeField(_("order number"), max_length=32, unique=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="orders", verbose_name=_("user")
    )
    client_order_no = CodeField(_("client's order number"), max_length=64, null=True, blank=True)
    cart_id = models.CharField(_("cart"), max_length=64)
    status = models.CharField(_("status"), max_length=9, choices=Status.choices, default=Status.PENDING)
    currency = models.CharField(_("currency"), max_length=3)
    amount_minor = models.PositiveBigIntegerField(_("amount in minor units"))
    refunded_minor = models.PositiveBigIntegerField(
        _("given back"), default=0, help_text=_("in minor units, with what is about to be given back")
    )
    customer_phone = CodeField(
        _("customer's phone"), max_length=20, blank=True, default="", help_text=_("of an imported order")
    )
    order_date = models.DateField(
        _("order date"), null=True, blank=True, help_text=_("as the file of an imported order says")
    )
    remark = models.TextField(_("remark"), blank=True, default="")
    revision = models.PositiveIntegerField(
        _("revision"), default=0, help_text=_("how often its article or quantity was corrected")
    )
    created_at = models.DateTimeField(_("created at"))
    paid_at = models.DateTimeField(_("paid at"), null=True, blank=True)
    shipped_at = models.DateTimeField(_("shipped at"), null=True, blank=True)
    cancelled_at = models.DateTimeField(_("cancelled at"), null=True, blank=True)

    objects = OrderQuerySet.as_manager()

    class Meta:
        verbose_name = _("order")
        verbose_name_plural = _("orders")
        constraints = [
            models.UniqueConstraint(fields=["user", "client_order_no"], name="orders_client_order_no_once"),
            models.CheckConstraint(condition=Q(status__in=Status.values), name="orders_status_known"),
            models.CheckConstraint(
                condition=Q(refunded_minor__lte=F("amount_minor")), name="orders_refunds_within_payment"
            ),
        ]

    def __str__(self) -> str:
        return self.order_no

    @property
    def amount(self) -> str:
        """The amount as a decimal string."""
        return decimal_string(amount_minor=self.amount_minor, currency=self.currency)

    @property
    def is_paid(self) -> bool:
        """Whether it was paid once, whatever happened since."""
        return self.status in PAID_ONCE

    @property
    def reference(self) -> str:
        """What the stock knows this order by."""
        return self.reference_of(revision=self.revision)

    def reference_of(self, *, revision: int) -> str:
        """What the stock knows one revision of this order by: a corrected order takes its pieces anew."""
        return f"order:{self.order_no}/{revision}" if revision else f"order:{self.order_no}"

    def quantities(self) -> dict[str, int]:
        """Pieces by sku. Ask in a transaction: the locking read sees what a rival has just committed."""
        return dict(self.lines.select_for_update().values_list("sku", "quantity"))


class OrderLine(models.Model):
    """So many pieces of one article, at the price of that day."""

    order = models.ForeignKey(Order, models.CASCADE, related_name="lines", verbose_name=_("order"))
    sku = CodeField(_("SKU"), max_length=64)
    quantity = models.PositiveIntegerField(_("quantity"))
    price_minor = models.PositiveBigIntegerField(_("price in minor units"))

    class Meta:
        verbose_name = _("order line")
        verbose_name_plural = _("order lines")
        constraints = [
            models.UniqueConstraint(fields=["order", "sku"], name="orders_line_per_sku"),
            models.CheckConstraint(condition=Q(quantity__gte=1), name="orders_quantity_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.quantity} × {self.sku}"
