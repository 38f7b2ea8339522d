"""What the callbacks of all payment providers have in common."""

import json
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from django.conf import settings
from django.utils import timezone

from idempotency.webhooks import Ack, InvalidSignature, Refuse, WebhookEvent, WebhookView
from payments import notices
from payments.models import Fate, Notice


@dataclass(frozen=True, kw_only=True)
class Heard(WebhookEvent):
    """An event, and what it says in the shop's words."""

    notice: Notice | None
    """``None`` where it is nothing to the shop."""

    ours: bool
    """Whether it is about this shop's own account."""


class ProviderCallback(WebhookView):
    """Takes note of what a provider tells, once, whatever becomes of it.

    Acknowledged is also what people have to look at (an unknown order, another amount): to hear it again
    would not help. Only what is about somebody else's account is refused.
    """

    @cached_property
    def now(self) -> datetime:
        """The instant at which this callback was received."""
        return timezone.now()

    @property
    def config(self) -> dict[str, Any]:
        """This provider's keys, and who we are there."""
        return settings.PAYMENTS_CALLBACKS[self.sender]

    def handle(self, event: Heard) -> Ack | Refuse:
        """Store the notice and do what follows from it: database work only."""
        if event.notice is None:
            return Ack()
        notice = copy(event.notice)  # a conflict runs this again, from the same start
        notice.provider, notice.event_no, notice.event_type = self.sender, event.id, event.type
        notice.content = _spelled(event.data)
        fate = notices.take(notice=notice, ours=event.ours, now=self.now)
        return Refuse("foreign") if fate == Fate.FOREIGN else Ack()


def check_age(*, stamp: str, now: datetime) -> None:
    """Check a time stamp in seconds since 1970.

    :raises InvalidSignature: when it is too far away: a recorded request sent again, or a wrong clock.
    """
    if not (stamp.isascii() and stamp.isdecimal() and len(stamp) < 15):
        raise InvalidSignature("no time stamp")
    age = int(now.timestamp()) - int(stamp)
    if abs(age) > settings.PAYMENTS_CALLBACK_TOLERANCE.total_seconds():
        raise InvalidSignature(f"the time stamp is {age} s old")


def _spelled(data: Any) -> str:
    """Spell the content for people; half a surrogate pair stays an escape, which no database refuses."""
    return json.dumps(data, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace").decode()
