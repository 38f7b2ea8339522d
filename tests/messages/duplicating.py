"""A sender that hands each message over one to five times, the copies among those of later messages."""

import random
from typing import Final

from idempotency import celery
from idempotency.relaying import Envelope

COPIES: Final = (0, 0, 1, 2, 3, 4)
"""How many copies a message gets, each as likely as the others."""

copies: list[Envelope] = []


def send(message: Envelope) -> None:
    """Send it, and some of the copies that wait. Copies die with the process, the message does not."""
    celery.send(message)
    copies.extend([message] * random.choice(COPIES))
    random.shuffle(copies)
    for _ in range(random.choice(COPIES)):
        if copies:
            celery.send(copies.pop())
