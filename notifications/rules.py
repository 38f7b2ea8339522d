"""Which messages are the same one, and for how long.

============  =======================  =========================
kind          the same when            for
============  =======================  =========================
verification  phone, template          ``NOTIFICATIONS_WINDOW``
notification  template, biz_id         ever
marketing     phone, campaign_id       one day in ``TIME_ZONE``
none          phone, template, biz_id  ``NOTIFICATIONS_WINDOW``
receipt       template, biz_id         ever
============  =======================  =========================

Receipts are the shop's own: a client cannot ask for one, and so not take its window.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.utils import timezone

from idempotency import keys

from .models import Channel, Kind


@dataclass(frozen=True, kw_only=True)
class Text:
    """What somebody is to be told."""

    recipient: str
    """A number in E.164, or an e-mail address."""

    template: str
    kind: str = Kind.PLAIN
    channel: str = Channel.SMS
    biz_id: str = ""
    campaign_id: str = ""


@dataclass(frozen=True)
class Rule:
    """What makes two texts the same, until when."""

    parts: tuple[str, ...]
    """The members of a text that are its key."""

    end: Callable[[datetime], datetime | None]
    """When the window of a send attempt at this time ends; ``None`` is never."""


def _after_a_while(at: datetime) -> datetime:
    return at + settings.NOTIFICATIONS_WINDOW


def _never(at: datetime) -> None:
    return None


def _with_the_day(at: datetime) -> datetime:
    day = timezone.localtime(at, timezone.get_default_timezone())
    return timezone.make_aware(
        datetime.combine(day.date() + timedelta(days=1), datetime.min.time()),
        timezone.get_default_timezone(),
    )


RULES: Final = {
    Kind.VERIFICATION: Rule(("recipient", "template"), _after_a_while),
    Kind.NOTIFICATION: Rule(("template", "biz_id"), _never),
    Kind.MARKETING: Rule(("recipient", "campaign_id"), _with_the_day),
    Kind.PLAIN: Rule(("recipient", "template", "biz_id"), _after_a_while),
    Kind.RECEIPT: Rule(("template", "biz_id"), _never),
}


def key_of(text: Text) -> str:
    """Return the key under which the same text is known; two kinds, or two channels, never meet."""
    parts = (getattr(text, name) for name in RULES[Kind(text.kind)].parts)
    return keys.join(text.channel, text.kind, *parts)


def end_of(kind: str, *, attempted_at: datetime) -> datetime | None:
    """Return when a window of this kind ends."""
    return RULES[Kind(kind)].end(attempted_at)
