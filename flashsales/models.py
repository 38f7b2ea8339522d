"""Sales of few units, and the tickets of those who got one."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, ClassVar
from uuid import uuid4

from django.conf import settings
from django.db import IntegrityError, models, transaction
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from idempotency.transitions import TransitionQuerySet
from orders.models import Order
from shop.fields import CodeField
from shop.querysets import first_seen


class FlashSaleQuerySet(models.QuerySet["FlashSale"]):
    """Sales. Units are taken and given back by conditional updates: the WHERE clause decides."""

    def current(self, *, sku: str, now: datetime) -> "FlashSale":
        """Return the article's sale that runs, else the next one, else the last one.

        :raises DoesNotExist: when it never had one.
        """
        begun = self.filter(sku=sku, starts_at__lte=now).order_by("-starts_at").first()
        if begun and now < begun.ends_at:
            return begun
        coming = self.filter(sku=sku, starts_at__gt=now).order_by("starts_at").first()
        if found := coming or begun:
            return found
        raise self.model.DoesNotExist(sku)

    def not_ended(self, *, now: datetime) -> "FlashSaleQuerySet":
        """Sales that run or are to come."""
        return self.filter(ends_at__gt=now)

    def overlapping(self, *, sku: str, starts_at: datetime, ends_at: datetime) -> "FlashSaleQuerySet":
        """Sales of the article that share a moment with that span."""
        return self.filter(sku=sku, starts_at__lt=ends_at, ends_at__gt=starts_at)

    def take_unit(self, *, now: datetime) -> bool:
        """Take a unit of the one sale of this QuerySet; ``False`` when none is left, or it does not run."""
        open_ones = self.filter(sold__lt=F("units"), starts_at__lte=now, ends_at__gt=now)
        return open_ones.update(sold=F("sold") + 1) == 1

    def give_unit_back(self) -> None:
        """Undo :meth:`take_unit`, for a ticket that came to nothing."""
        self.update(sold=F("sold") - 1)


class FlashSale(models.Model):
    """So many units of one article, one for each user, within a span of time."""

    sku = CodeField(_("SKU"), max_length=64)
    units = models.PositiveIntegerField(_("units"))
    sold = models.PositiveIntegerField(
        _("sold"), default=0, help_text=_("units that belong to a ticket, its order made or not")
    )
    starts_at = models.DateTimeField(_("starts at"))
    ends_at = models.DateTimeField(_("ends at"))
    created_at = models.DateTimeField(_("created at"))

    objects = FlashSaleQuerySet.as_manager()

    class Meta:
        verbose_name = _("flash sale")
        verbose_name_plural = _("flash sales")
        indexes = [models.Index(fields=["sku", "starts_at"], name="flash_sales_of_sku")]
        constraints = [
            models.CheckConstraint(condition=Q(units__gte=1), name="flash_units_positive"),
            models.CheckConstraint(condition=Q(sold__lte=F("units")), name="flash_never_oversold"),
            models.CheckConstraint(condition=Q(ends_at__gt=F("starts_at")), name="flash_ends_after_start"),
        ]

    def __str__(self) -> str:
        return f"{self.sku} × {self.units}"


class Status(models.TextChoices):
    """What became of a ticket."""

    QUEUED = "QUEUED", _("queued")
    CREATED = "CREATED", _("order created")
    SOLD_OUT = "SOLD_OUT", _("sold out")


class TicketQuerySet(TransitionQuerySet["Ticket"]):
    """Tickets, and the moves that their status may make: an order that was made is never unsaid."""

    moves: ClassVar = {Status.QUEUED: {Status.CREATED, Status.SOLD_OUT}}

    def create_or_get(self, *, sale: FlashSale, user_id: int, **values: Any) -> tuple["Ticket", bool]:
        """Insert a ticket, or return the user's: the unique index decides.

        :returns: the ticket, and ``True`` when this call inserted it.
        """
        try:
            with transaction.atomic(using=self.db):
                return self.create(sale=sale, user_id=user_id, **values), True
        except IntegrityError:
            if known := first_seen(self.filter(sale=sale, user_id=user_id)):
                return known, False
            raise

    def locked(self) -> "Ticket":
        """Return the one ticket of this QuerySet as it is now, and keep rivals out until the commit."""
        return self.select_for_update().get()

    def waiting_since(self, moment: datetime) -> "TicketQuerySet":
        """Tickets whose message was published before that, and is not worked on yet."""
        return self.filter(status=Status.QUEUED, queued_at__lt=moment)

    def marks(self) -> Iterator[tuple[int, bool, str]]:
        """User, whether the ticket holds a unit, and the mark of its key, of each ticket."""
        rows = self.order_by().values_list("user_id", "status", "mark").iterator()
        return ((user_id, status != Status.SOLD_OUT, mark) for user_id, status, mark in rows)


class Ticket(models.Model):
    """A user's place in a sale. Its status changes only by ``transition()``."""

    number = models.UUIDField(_("number"), default=uuid4, unique=True, editable=False)
    sale = models.ForeignKey(FlashSale, models.PROTECT, related_name="tickets", verbose_name=_("sale"))
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, verbose_name=_("user"))
    mark = models.CharField(_("mark"), max_length=32, help_text=_("digest of the key that it was asked by"))
    status = models.CharField(_("status"), max_length=8, choices=Status.choices, default=Status.QUEUED)
    order = models.OneToOneField(
        Order, models.PROTECT, related_name="ticket", null=True, blank=True, verbose_name=_("order")
    )
    created_at = models.DateTimeField(_("created at"))
    queued_at = models.DateTimeField(_("queued at"), help_text=_("when its message was published last"))

    objects = TicketQuerySet.as_manager()

    class Meta:
        verbose_name = _("ticket")
        verbose_name_plural = _("tickets")
        indexes = [models.Index(fields=["status", "queued_at"], name="flash_tickets_waiting")]
        constraints = [
            models.UniqueConstraint(fields=["sale", "user"], name="flash_one_for_each_user"),
            models.CheckConstraint(
                condition=Q(status=Status.CREATED, order__isnull=False)
                | Q(status__in=[Status.QUEUED, Status.SOLD_OUT], order__isnull=True),
                name="flash_status_fits_order",
            ),
        ]

    def __str__(self) -> str:
        return str(self.number)
