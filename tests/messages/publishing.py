"""A process that makes orders and tells of each in the same transaction; killed, it goes on where it was.

``python -m tests.messages.publishing ORDERS PAUSE``: so many, with a pause of about so many seconds.
"""

import random
import sys
from time import sleep
from typing import Final

import django

ROUTES: Final = {
    "campaign.noted": ("campaign.note",),
    "campaign.paid": ("campaign.note", "rewards.grant_coupon", "rewards.add_points"),
}

UNDONE: Final = 0.1
"""How many of the transactions are rolled back at their end, and begun again."""


class Undone(Exception):
    """Rolls a transaction back."""


def main(orders: int, pause: float) -> None:
    django.setup()
    from tests.lab.models import Counter

    made = set(Counter.objects.values_list("name", flat=True))
    for number in range(orders):
        while (order_no := f"C-{number}") not in made:
            sleep(random.random() * 2 * pause)
            try:
                make(order_no, number)
            except Undone:
                continue
            made.add(order_no)


def make(order_no: str, number: int) -> None:
    """Write one order; each fourth is paid.

    :raises Undone: now and then, at the end: neither the order nor its message is there.
    """
    from django.db import transaction

    from idempotency.outbox import publish
    from tests.lab.models import Counter

    topic = "campaign.noted" if number % 4 else "campaign.paid"
    facts = {
        "order_no": order_no,
        "user_id": buyer(number),
        "amount_minor": amount(number),
        "currency": "CNY",
    }
    with transaction.atomic():
        Counter.objects.create(name=order_no, value=amount(number))
        publish(topic, facts, key=order_no)
        if random.random() < UNDONE:
            raise Undone


def buyer(number: int) -> int:
    from django.contrib.auth.models import User

    return User.objects.get(username=("alice", "bob")[number % 3 % 2]).pk


def amount(number: int) -> int:
    """Return what an order costs, in minor units: one point for each hundred."""
    return 100 * (1 + number % 7)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
