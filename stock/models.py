"""Pieces on hand, and the ledger of what was taken and given back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from django.db import IntegrityError, models, transaction
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from idempotency import conf
from idempotency.exceptions import OperationInProgress
from shop.fields import CodeField

from .exceptions import DeductionDiffers
from .strategies import Demand, Level, Strategy, choose, insist

MAX_QUANTITY: Final = 2**31 - 1
"""What the column holds on every database."""

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Deduction:
    """What became of a deduction."""

    remaining: int
    """Pieces on hand right after it; of a repeat, at present."""

    version: int
    """The item's version at that moment."""

    is_duplicate: bool
    """Whether the reference had taken them before, and this call took nothing."""


class StockItemQuerySet(models.QuerySet["StockItem"]):
    """The only way to change what is on hand: each change is one statement that decides, with its ledger row.

    Outside a transaction each verb makes its own, and begins it again a few times when rivals made it fail.
    """

    def deduct(
        self,
        *,
        sku: str,
        quantity: int,
        reference: str,
        version: int | None = None,
        strategy: str | None = None,
    ) -> Deduction:
        """Take ``quantity`` pieces for ``reference``, once however often it is asked for.

        A repeat succeeds also when the stock is gone since. ``version`` takes them only if the item is still
        as the caller saw it; ``strategy`` is one of those in ``strategies``, by default ``STOCK_STRATEGY``.

        :raises InsufficientStock: when fewer are on hand, or the article is unknown; nothing is taken.
        :raises StockChanged: when ``version`` is outdated and there are enough; nothing is taken.
        :raises StockBusy: when optimistic attempts came too late each time and there are enough.
        :raises DeductionDiffers: when the reference took another quantity before.
        :raises OperationInProgress: when rivals made the transaction fail too often, or what the reference
            has taken is hidden behind the snapshot of the caller's transaction.
        :raises ValueError: when ``quantity`` is not a whole number of at least 1.
        """
        _check_quantity(quantity)
        demand = Demand(items=self.using(self._alias), sku=sku, quantity=quantity, is_alone=self._is_alone)
        take = choose(name=strategy, version=version)
        return self._run(partial(self._deduct, demand, reference, take))

    def deduct_all(
        self, *, quantities: Mapping[str, int], reference: str, strategy: str | None = None
    ) -> None:
        """Take several articles for ``reference``, all of them or none, always in the order of their skus.

        One order for everybody: two buyers of the same articles never wait for each other in a circle.

        :raises InsufficientStock: when one of them runs short.
        """
        self._run(partial(self._deduct_all, quantities, reference, strategy))

    def restore(self, *, sku: str, reference: str) -> bool:
        """Give back once what ``reference`` took of one article.

        :returns: ``True`` when this call gave it back, ``False`` when it was given back before.
        :raises StockMovement.DoesNotExist: when the reference never took any.
        """
        return self._run(partial(self._restore, sku, reference))

    def restore_all(self, *, reference: str) -> None:
        """Give back once all that ``reference`` took, in the order of the skus."""
        self._run(partial(self._restore_all, reference))

    def recount(self, *, sku: str, on_hand: int) -> None:
        """Set what somebody has counted on the shelf, of a new or a known article."""
        _item, created = self.get_or_create(sku=sku, defaults={"on_hand": on_hand})
        if not created:
            self.filter(sku=sku).update(on_hand=on_hand, version=F("version") + 1)

    def _run(self, attempt: Callable[[], Result]) -> Result:
        """Only the owner of a transaction can begin it again."""
        return insist(attempt) if self._is_alone else attempt()

    def _deduct(self, demand: Demand, reference: str, take: Strategy) -> Deduction:
        try:
            with transaction.atomic(using=self._alias):
                self._record(demand.sku, reference, Kind.DEDUCTED, demand.quantity)
                level = take(demand)
        except _Recorded:
            return self._repeated(demand, reference)
        return Deduction(**level._asdict(), is_duplicate=False)

    def _deduct_all(self, quantities: Mapping[str, int], reference: str, strategy: str | None) -> None:
        with transaction.atomic(using=self._alias):
            for sku in sorted(quantities):
                self.deduct(sku=sku, quantity=quantities[sku], reference=reference, strategy=strategy)

    def _restore(self, sku: str, reference: str) -> bool:
        taken = self._ledger.get(sku=sku, reference=reference, kind=Kind.DEDUCTED).quantity
        try:
            with transaction.atomic(using=self._alias):
                self._record(sku, reference, Kind.RESTORED, taken)
                self.filter(sku=sku).update(on_hand=F("on_hand") + taken, version=F("version") + 1)
        except _Recorded:
            return False
        return True

    def _restore_all(self, reference: str) -> None:
        taken = self._ledger.filter(reference=reference, kind=Kind.DEDUCTED)
        with transaction.atomic(using=self._alias):
            for sku in sorted(taken.values_list("sku", flat=True)):
                self.restore(sku=sku, reference=reference)

    def _record(self, sku: str, reference: str, kind: "Kind", quantity: int) -> None:
        try:
            self._ledger.record(sku=sku, reference=reference, kind=kind, quantity=quantity)
        except IntegrityError as error:
            raise _Recorded from error

    def _repeated(self, demand: Demand, reference: str) -> Deduction:
        line, level = self._seen(demand, reference)
        if line.quantity != demand.quantity:
            raise DeductionDiffers(demand.sku, reference)
        return Deduction(**level._asdict(), is_duplicate=True)

    def _seen(self, demand: Demand, reference: str) -> tuple["StockMovement", Level]:
        """Return what is there: a snapshot that shows the line shows what is left after it, too."""
        lines = self._ledger.filter(sku=demand.sku, reference=reference, kind=Kind.DEDUCTED)
        with transaction.atomic(using=self._alias, savepoint=False):
            for lock in (False, True):  # rivals who all lock can deadlock, so that comes second
                if line := (lines.select_for_update() if lock else lines).first():
                    return line, demand.look(lock=lock)
        raise OperationInProgress(conf.get("RETRY_AFTER"))

    @property
    def _alias(self) -> str:
        self._for_write = True
        return self.db

    @property
    def _is_alone(self) -> bool:
        return not transaction.get_connection(self._alias).in_atomic_block

    @property
    def _ledger(self) -> "StockMovementQuerySet":
        return StockMovement.objects.using(self._alias)


class _Recorded(Exception):
    """The ledger has that line already."""


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
