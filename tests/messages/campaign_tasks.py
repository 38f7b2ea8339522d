"""What a campaign's messages ask for."""

import random
from time import sleep
from typing import Any, Final

from celery import shared_task

from idempotency.celery import IdempotentTask
from tests.lab.effects import do

LONGEST_WORK: Final = 0.05
"""Seconds between the write and the commit, for somebody to be killed in."""


@shared_task(base=IdempotentTask, key="message_id", name="campaign.note", retention=None)
def note(*, message_id: str, order_no: str, **facts: Any) -> None:
    """Write a row that nothing but the guard keeps from being written twice."""
    do(f"{order_no} by {message_id}")
    sleep(random.random() * LONGEST_WORK)
