"""Messages: texts that are asked for twice, and a worker that dies between two of its effects."""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from demo.walk import Check, Step, Walk, wait_until
from idempotency.models import OutboxMessage
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
    wait_until(lambda: not _unsent().exists())  # what was paid before is told
    order_id, phone = walk.ordered(), _phone_of_buyer()
    walk.sandbox.rule("silent_after", call="message", phone=phone, seconds=LONG_ENOUGH_TO_KILL)
    paid = walk.client.insist_on_paying(order_id)
    wait_until(lambda: all(check.holds for check in _told(walk, order_id)))
    walk.worker.kill()
    answered = [Check("payStatus", paid.pay_status, "paid")]
    unsent = Check(_("messages still to be sent"), _unsent(order_id).count(), 1)
    sent = _("one payment; kill -9 of the worker while it tells of it")
    yield Step(sent, answered, [*_told(walk, order_id), unsent])
    walk.worker.start()
    wait_until(lambda: not _unsent(order_id).exists())
    unsent = Check(_("messages still to be sent"), _unsent(order_id).count(), 0)
    sent = _("nothing: another worker finds the message and delivers it again")
    yield Step(sent, effects=[*_told(walk, order_id), unsent])


def _texts(walk: Walk, phone: str, expected: int) -> list[Check]:
    return [Check(_("texts at the provider"), len(walk.sandbox.texts(phone)), expected)]


def _told(walk: Walk, order_id: str) -> list[Check]:
    points = PointsEntry.objects.filter(order_no=order_id, kind=Kind.EARNED)
    texts = [text for text in walk.sandbox.texts(_phone_of_buyer()) if text["params"]["biz_id"] == order_id]
    return [
        Check(_("coupons"), Coupon.objects.filter(order_no=order_id).count(), 1),
        Check(_("points"), sum(points.values_list("points", flat=True)), 19),
        Check(_("texts at the provider"), len(texts), 1),
    ]


def _unsent(order_id: str | None = None) -> QuerySet[OutboxMessage]:
    pending = OutboxMessage.objects.pending()
    return pending.filter(key=order_id) if order_id else pending


def _phone_of_buyer() -> str:
    return Contact.objects.get(user__username="alice").phone


def _new_phone() -> str:
    return f"+86138{random.randrange(10**8):08}"  # noqa: S311
