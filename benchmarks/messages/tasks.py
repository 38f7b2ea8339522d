"""One conditional update and one insert for each message, as its users write it, and guarded."""

import socket

from celery import shared_task
from django.db import transaction
from django.db.models import F

from idempotency.celery import IdempotentTask


def take(*, sku: str) -> None:
    from benchmarks.project.models import Order, Stock

    if Stock.objects.filter(sku=sku, on_hand__gte=1).update(on_hand=F("on_hand") - 1):
        Order.objects.create(sku=sku, user_id=1, amount=1)


@shared_task(name="benchmarks.plain", acks_late=True, reject_on_worker_lost=True)
def plain(*, message_id: str, sku: str) -> None:
    with transaction.atomic():
        take(sku=sku)


@shared_task(base=IdempotentTask, name="benchmarks.guarded", key="message_id")
def guarded(*, message_id: str, sku: str) -> None:
    take(sku=sku)


@shared_task(name="benchmarks.ring")
def ring(*, port: int) -> None:
    """Tell that all messages before this one are done, and wait until the next may begin."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.recv(1)
