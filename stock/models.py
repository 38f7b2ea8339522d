"""Pieces on hand, and the ledger of what was taken and given back."""

from collections.abc import Mapping
from typing import Final

from django.db import IntegrityError, models, transaction
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from shop.fields import CodeField
from shop.querysets import first_seen

from .exceptions import DeductionDiffers, InsufficientStock

MAX_QUANTITY: Final = 2**31 - 1
"""What the column holds on every database."""


class StockItemQuerySet(models.QuerySet["StockItem"]):
    """The only way to change what is on hand: conditional updates, each with its row in the ledger."""

    def deduct(self, *, sku: str, quantity: int, reference: str) -> bool:
        """Take ``quantity`` pieces for ``reference``, once however often it is asked for.

        :returns: ``True`` when this call took them, ``False`` when they were taken before.
        :raises InsufficientStock: when fewer are on hand, or the article is unknown; nothing is taken.
        :raises DeductionDiffers: when the reference took another quantity before.
        :raises ValueError: when ``quantity`` is not a whole number of at least 1.
        """
        _check_quantity(quantity)
        try:
            with transaction.atomic(using=self._alias):
                self._ledger.record(sku=sku, reference=reference, kind=Kind.DEDUCTED, quantity=quantity)
                self._take(sku, quantity)
        except IntegrityError:
            before = self._ledger.entry(sku=sku, reference=reference, kind=Kind.DEDUCTED)
            if before is None:
                raise
            if before.quantity != quantity:
                raise DeductionDiffers(sku, reference) from None
            return False
        return True

    def deduct_all(self, *, quantities: Mapping[str, int], reference: str) -> None:
        """Take several articles for ``reference``, all of them or none, always in the order of their skus.

        One order for everybody: two buyers of the same articles never wait for each other in a circle.

        :raises InsufficientStock: when one of them runs short.
        """
        with transaction.atomic(using=self._alias):
            for sku in sorted(quantities):
                self.deduct(sku=sku, quantity=quantities[sku], reference=reference)

    def restore(self, *, sku: str, reference: str) -> bool:
        """Give back once what ``reference`` took of one article.

        :returns: ``True`` when this call gave it back, ``False`` when it was given back before.
        :raises StockMovement.DoesNotExist: when the reference never took any.
        """
        taken = self._ledger.get(sku=sku, reference=reference, kind=Kind.DEDUCTED).quantity
        try:
            with transaction.atomic(using=self._alias):
                self._ledger.record(sku=sku, reference=reference, kind=Kind.RESTORED, quantity=taken)
                self.filter(sku=sku).update(on_hand=F("on_hand") + taken, version=F("version") + 1)
        except IntegrityError:
            if not self._ledger.entry(sku=sku, reference=reference, kind=Kind.RESTORED):
                raise
            return False
        return True

    def restore_all(self, *, reference: str) -> None:
        """Give back once all that ``reference`` took, in the order of the skus."""
        taken = self._ledger.filter(reference=reference, kind=Kind.DEDUCTED)
        with transaction.atomic(using=self._alias):
            for sku in sorted(taken.values_list("sku", flat=True)):
                self.restore(sku=sku, reference=reference)

    def recount(self, *, sku: str, on_hand: int) -> None:
        """Set what somebody has counted on the shelf, of a new or a known article."""
        _item, created = self.get_or_create(sku=sku, defaults={"on_hand": on_hand})
        if not created:
            self.filter(sku=sku).update(on_hand=on_hand, version=F("version") + 1)

    def _take(self, sku: str, quantity: int) -> None:
        enough = self.filter(
            sku=sku, on_hand__gte=quantity
        )  # the WHERE clause decides, not a value read before
        if not enough.update(on_hand=F("on_hand") - quantity, version=F("version") + 1):
            raise InsufficientStock(sku)

    @property
    def _alias(self) -> str:
        self._for_write = True
        return self.db

    @property
    def _ledger(self) -> "StockMovementQuerySet":
        return StockMovement.objects.using(self._alias)


class StockItem(models.Model):
    """How many pieces of one article are on hand. ``version`` grows with each change."""

    sku = CodeField(_("SKU"), max_length=64, unique=True)
    on_hand = models.IntegerField(_("on hand"))
    version = models.PositiveBigIntegerField(_("version"), default=0)

    objects = StockItemQuerySet.as_manager()

    class Meta:
        verbose_name = _("stock item")
        verbose_name_plural = _("stock items")
        constraints = [
            models.CheckConstraint(condition=Q(on_hand__gte=0), name="stock_never_negative"),
        ]

    def __str__(self) -> str:
        return self.sku


class Kind(models.TextChoices):
    """Why pieces moved."""

    DEDUCTED = "DEDUCTED", _("deducted")
    RESTORED = "RESTORED", _("restored")


class StockMovementQuerySet(models.QuerySet["StockMovement"]):
    """The ledger: written once, never changed."""

    def record(self, *, sku: str, reference: str, kind: Kind, quantity: int) -> None:
        """Write one line.

        :raises IntegrityError: when the reference has moved this article in this direction before.
        """
        self.create(sku=sku, reference=reference, kind=kind, quantity=quantity, created_at=timezone.now())

    def entry(self, *, sku: str, reference: str, kind: Kind) -> "StockMovement | None":
        """Return the line that is there, also one that a rival has just committed. Ask in a transaction."""
        wanted = self.filter(sku=sku, reference=reference, kind=kind)
        return first_seen(wanted)


class StockMovement(models.Model):
    """One line of the ledger: a reference moves an article once in each direction."""

    reference = CodeField(
        _("reference"), max_length=100, help_text=_("for whom, such as order:ORD20261130-…")
    )
    sku = CodeField(_("SKU"), max_length=64)
    kind = models.CharField(_("kind"), max_length=8, choices=Kind.choices)
    quantity = models.PositiveIntegerField(_("quantity"))
    created_at = models.DateTimeField(_("created at"))

    objects = StockMovementQuerySet.as_manager()

    class Meta:
        verbose_name = _("stock movement")
        verbose_name_plural = _("stock movements")
        constraints = [
            models.UniqueConstraint(fields=["reference", "sku", "kind"], name="stock_moves_once"),
            models.CheckConstraint(condition=Q(kind__in=Kind.values), name="stock_kind_known"),
            models.CheckConstraint(condition=Q(quantity__gte=1), name="stock_quantity_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.reference} {self.sku} {self.kind} {self.quantity}"


def _check_quantity(quantity: int) -> None:
    if type(quantity) is not int or not 1 <= quantity <= MAX_QUANTITY:
        raise ValueError(f"quantity is a whole number from 1 to {MAX_QUANTITY}, not {quantity!r}.")
