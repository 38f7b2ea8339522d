"""What a paid order earns, and what a refund takes back. Each happens once for an order, in any order."""

from datetime import datetime
from secrets import token_hex
from typing import Final

from django.db import transaction

from shop.money import MINOR_DIGITS

from .models import Balance, Coupon, Kind, PointsEntry

CODE_BYTES: Final = 8


def grant_coupon(*, user_id: int, order_no: str, campaign: str, now: datetime) -> tuple[Coupon, bool]:
    """Give the campaign's coupon for an order.

    :returns: the coupon, and ``True`` when this call gave it.
    """
    code = token_hex(CODE_BYTES).upper()
    return Coupon.objects.grant(user_id=user_id, order_no=order_no, campaign=campaign, code=code, now=now)


@transaction.atomic
def add_points(*, user_id: int, order_no: str, points: int, now: datetime) -> bool:
    """Give the points of an order, unless they were given, or taken back before they came.

    :returns: ``True`` when this call gave them.
    """
    Balance.objects.locked(user_id=user_id)
    if PointsEntry.objects.seen(order_no=order_no, kind=Kind.EARNED):
        return False
    taken_back = PointsEntry.objects.seen(order_no=order_no, kind=Kind.TAKEN_BACK)
    given = 0 if taken_back else points
    _write(user_id=user_id, order_no=order_no, kind=Kind.EARNED, points=given, now=now)
    Balance.objects.add(user_id=user_id, points=given)
    return given > 0


@transaction.atomic
def take_points_back(*, user_id: int, order_no: str, now: datetime) -> int:
    """Take back what an order earned, as far as it is not spent; points that come later are not given.

    :returns: how many points this call took.
    """
    balance = Balance.objects.locked(user_id=user_id)
    if PointsEntry.objects.seen(order_no=order_no, kind=Kind.TAKEN_BACK):
        return 0
    earned = PointsEntry.objects.seen(order_no=order_no, kind=Kind.EARNED)
    points = min(earned.points if earned else 0, balance.points)
    Balance.objects.deduct(user_id=user_id, points=points)
    _write(user_id=user_id, order_no=order_no, kind=Kind.TAKEN_BACK, points=points, now=now)
    return points


def points_for(*, amount_minor: int, currency: str) -> int:
    """One point for each whole unit of the currency; for each hundred of one without decimals."""
    return amount_minor // 10 ** (MINOR_DIGITS[currency] or 2)


def _write(*, user_id: int, order_no: str, kind: Kind, points: int, now: datetime) -> None:
    PointsEntry.objects.create(user_id=user_id, order_no=order_no, kind=kind, points=points, created_at=now)
