"""What happens behind the door: a ticket becomes an order, at the speed that the database likes."""

from typing import Any
from uuid import UUID

from celery import shared_task
from django.utils import timezone

from idempotency.celery import IdempotentTask

from . import queueing, reconciling, services


@shared_task(base=IdempotentTask, name="flashsales.create_order", key="message_id")
def create_order(*, message_id: str, ticket: str, **facts: Any) -> str:
    """Make the order of a ticket; one order however many messages tell of it."""
    return services.create_order(ticket=UUID(ticket), now=timezone.now()).status


@shared_task(name="flashsales.reconcile", ignore_result=True)
def reconcile() -> None:
    """Make gates and queue agree with the database, as ``manage.py reconcile_flash_sales`` does."""
    queueing.announce_late(now=timezone.now())
    for _ in reconciling.reconcile(now=timezone.now()):
        pass
