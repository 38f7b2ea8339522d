"""What happens here when an order was paid or refunded: messages of the outbox, each taken once."""

import logging
from typing import Any

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from idempotency.celery import IdempotentTask

from . import services

logger = logging.getLogger("rewards")


@shared_task(base=IdempotentTask, name="rewards.grant_coupon", key="message_id", retention=None)
def grant_coupon(*, message_id: str, order_no: str, user_id: int, **facts: Any) -> str:
    """Give the buyer a coupon, one for each order and campaign even where two messages tell of it."""
    coupon, granted = services.grant_coupon(
        user_id=user_id, order_no=order_no, campaign=settings.REWARDS_CAMPAIGN, now=timezone.now()
    )
    if not granted:
        logger.info("a coupon for %s was granted before: message %s changes nothing", order_no, message_id)
    return coupon.code


@shared_task(base=IdempotentTask, name="rewards.add_points", key="message_id", retention=None)
def add_points(
    *, message_id: str, order_no: str, user_id: int, amount_minor: int, currency: str, **facts: Any
) -> bool:
    """Give the buyer points."""
    points = services.points_for(amount_minor=amount_minor, currency=currency)
    added = services.add_points(user_id=user_id, order_no=order_no, points=points, now=timezone.now())
    if not added:
        logger.info("no points for %s: message %s changes nothing", order_no, message_id)
    return added


@shared_task(base=IdempotentTask, name="rewards.take_points_back", key="message_id", retention=None)
def take_points_back(*, message_id: str, order_no: str, user_id: int, **facts: Any) -> int:
    """Take the points of an order back, whose money was given back."""
    return services.take_points_back(user_id=user_id, order_no=order_no, now=timezone.now())
