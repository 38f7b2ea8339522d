"""Messages: texts that are asked for twice, and a worker that dies between two of its effects."""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from django.utils.translation import gettext as _

from demo.walk import Check, Step, Walk, wait_until
from idempotency.models import MessageState, OutboxMessage
from notifications.models import Contact
from rewards.models import Coupon, Kind, PointsEntry

LONG_ENOUGH_TO_KILL = 5.0
"""Seconds."""


def code_twenty_times(walk: Walk) -> Iterator[Step]:
    """An impatient user, and a page that sends again by itself."""
    phone = _new_phone()
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(walk.client.ask_for_code, [phone] * 20))
    answered = [
        Check(_("200 SMS sent"), sum(a.status == 200 and not a.is_duplicate for a in answers), 1),
        Check(_("200 isDuplicate"), sum(a.status == 200 and a.is_duplicate for a in answers), 19),
    ]
    yield Step(_("one code, asked for by 20 clients at once"), answered, _texts(walk, phone, 1))


def silent_sender(walk: Walk) -> Iterator[Step]:
    """The provider sends the text and says nothing."""
    phone = _new_phone()
    walk.sandbox.rule("silent_after", call="message", phone=phone)
    unknown = walk.client.ask_for_code(phone)
    answered = [Check(_("status"), unknown.status, 202)]
    yield Step(_("one code; the provider sends it and does not answer"), answered, _texts(walk, phone, 1))
    again = walk.client.ask_for_code(phone)
    repeats = int(again.status == 200 and again.is_duplicate)
    answered = [Check(_("200 isDuplicate"), repeats, 1)]
    yield Step(_("the same code again"), answered, _texts(walk, phone, 1))


def killed_teller(walk: Walk) -> Iterator[Step]:
    """The worker dies when coupon and points are given and the text is sent, and nothing says so yet."""
    order_id, phone = walk.ordered(), _phone_of_buyer()
    before = len(walk.sandbox.texts(phone))
    walk.sandbox.rule("silent_after", call="message", phone=phone, seconds=LONG_ENOUGH_TO_KILL)
    paid = walk.client.insist_on_paying(order_id)
    wait_until(lambda: len(walk.sandbox.texts(phone)) > before and _is_rewarded(order_id))
    walk.worker.kill()
    unsent = OutboxMessage.objects.filter(key=order_id, state=MessageState.PENDING)
    effects = [*_rewards(order_id), Check(_("messages still to be sent"), unsent.count(), 1)]
    answered = [Check("payStatus", paid.pay_status, "paid")]
    yield Step(_("one payment; kill -9 of the worker while it tells of it"), answered, effects)
    walk.worker.start()
    wait_until(lambda: not unsent.exists())
    effects = [
        *_rewards(order_id),
        *_texts(walk, phone, 1, before=before),
        Check(_("messages still to be sent"), unsent.count(), 0),
    ]
    yield Step(_("nothing: another worker finds the message and delivers it again"), effects=effects)


def _texts(walk: Walk, phone: str, expected: int, *, before: int = 0) -> list[Check]:
    return [Check(_("texts at the provider"), len(walk.sandbox.texts(phone)) - before, expected)]


def _rewards(order_id: str) -> list[Check]:
    points = PointsEntry.objects.filter(order_no=order_id, kind=Kind.EARNED)
    return [
        Check(_("coupons"), Coupon.objects.filter(order_no=order_id).count(), 1),
        Check(_("points"), sum(points.values_list("points", flat=True)), 19),
    ]


def _is_rewarded(order_id: str) -> bool:
    return all(check.holds for check in _rewards(order_id))


def _phone_of_buyer() -> str:
    return Contact.objects.get(user__username="alice").phone


def _new_phone() -> str:
    return f"+86138{random.randrange(10**8):08}"  # noqa: S311
