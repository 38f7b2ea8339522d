"""Coupons and points: each given once for an order, by a unique constraint of its own."""

from contextlib import suppress
from datetime import datetime

from django.conf import settings
from django.db import IntegrityError, models, transaction
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from shop.fields import CodeField
from shop.querysets import first_seen


class CouponQuerySet(models.QuerySet["Coupon"]):
    """Coupons; whoever comes second finds the first one's."""

    def grant(
        self, *, user_id: int, order_no: str, campaign: str, code: str, now: datetime
    ) -> tuple["Coupon", bool]:
        """Give the coupon of a campaign for one order, once however often it is asked for.

        :returns: the coupon, and ``True`` when this call gave it.
        """
        try:
            with transaction.atomic(using=self.db):
                values = {"user_id": user_id, "code": code, "created_at": now}
                return self.create(order_no=order_no, campaign=campaign, **values), True
        except IntegrityError:
            known = first_seen(self.filter(order_no=order_no, campaign=campaign))
            if known is None:
                raise
            return known, False


class Coupon(models.Model):
    """One coupon of one campaign, for one order."""

    code = CodeField(_("code"), max_length=32, unique=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, verbose_name=_("user"))
    order_no = CodeField(_("order number"), max_length=64)
    campaign = CodeField(_("campaign"), max_length=64)
    created_at = models.DateTimeField(_("created at"))

    objects = CouponQuerySet.as_manager()

    class Meta:
        verbose_name = _("coupon")
        verbose_name_plural = _("coupons")
        constraints = [
            models.UniqueConstraint(fields=["order_no", "campaign"], name="rewards_coupon_once"),
        ]

    def __str__(self) -> str:
        return self.code


class BalanceQuerySet(models.QuerySet["Balance"]):
    """The only way to change a balance: conditional updates."""

    def locked(self, *, user_id: int) -> "Balance":
        """Lock a user's balance, the first time too: rivals over one user's points queue here."""
        rows = self.filter(user_id=user_id)
        if not rows.exists():
            with suppress(IntegrityError), transaction.atomic(using=self.db):  # a rival was quicker
                self.create(user_id=user_id)
        return rows.select_for_update().get()

    def add(self, *, user_id: int, points: int) -> None:
        """Add points to a balance that is there."""
        self.filter(user_id=user_id).update(points=F("points") + points)

    def deduct(self, *, user_id: int, points: int) -> bool:
        """Take points where there are enough of them: the WHERE clause decides.

        :returns: ``False`` when there are fewer; none is taken.
        """
        enough = self.filter(user_id=user_id, points__gte=points)
        return enough.update(points=F("points") - points) == 1


class Balance(models.Model):
    """The points that a user has."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.PROTECT, primary_key=True, verbose_name=_("user")
    )
    points = models.BigIntegerField(_("points"), default=0)

    objects = BalanceQuerySet.as_manager()

    class Meta:
        verbose_name = _("balance")
        verbose_name_plural = _("balances")
        constraints = [models.CheckConstraint(condition=Q(points__gte=0), name="rewards_never_negative")]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.points}"


class Kind(models.TextChoices):
    """Why points moved."""

    EARNED = "EARNED", _("earned")
    TAKEN_BACK = "TAKEN_BACK", _("taken back")


class PointsEntryQuerySet(models.QuerySet["PointsEntry"]):
    """The ledger: written once, never changed."""

    def seen(self, *, order_no: str, kind: Kind) -> "PointsEntry | None":
        """Return the line that is there, also one that a rival has just committed. Ask in a transaction."""
        return first_seen(self.filter(order_no=order_no, kind=kind))


class PointsEntry(models.Model):
    """One line of the ledger: an order moves points once in each direction."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, verbose_name=_("user"))
    order_no = CodeField(_("order number"), max_length=64)
    kind = models.CharField(_("kind"), max_length=10, choices=Kind.choices)
    points = models.PositiveBigIntegerField(
        _("points"), help_text=_("0 where there were none to give or to take")
    )
    created_at = models.DateTimeField(_("created at"))

    objects = PointsEntryQuerySet.as_manager()

    class Meta:
        verbose_name = _("points entry")
        verbose_name_plural = _("points entries")
        constraints = [
            models.UniqueConstraint(fields=["order_no", "kind"], name="rewards_points_once"),
            models.CheckConstraint(condition=Q(kind__in=Kind.values), name="rewards_kind_known"),
        ]

    def __str__(self) -> str:
        return f"{self.order_no} {self.kind} {self.points}"
