"""Finish what was begun: messages of which it is not known what became of them.

Two of these at once, or one twice, change nothing more than one; nothing is sent here.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from django.conf import settings

from idempotency.dialects import Clock
from idempotency.exceptions import OutcomeUnknown, Refused, RetryLater

from .models import Message, MessageStatus
from .sending import deliver

logger = logging.getLogger("notifications")


@dataclass(frozen=True)
class Finding:
    """What became of one message."""

    number: str
    result: str
    """``sent``, the code of a refusal, ``unknown``, ``busy``, or ``failed`` where somebody must look."""


def reconcile() -> Iterator[Finding]:
    """Ask the provider about each message without an answer whose lease has ended, while it matters."""
    for number in _waiting():
        yield Finding(number, _result(number))


def _waiting() -> list[str]:
    """Return those that nobody works on: also one whose process died before it had claimed it."""
    rows = Message.objects.unsettled().worth_asking().annotate(now=Clock()).order_by("pk")
    return [
        message.number
        for message in rows
        if message.status == MessageStatus.UNKNOWN
        or message.now - (message.attempted_at or message.created_at) >= settings.NOTIFICATIONS_LEASE
    ]


def _result(number: str) -> str:
    try:
        deliver(number=number, asked=False)
    except Refused as refusal:
        return str(refusal.code)
    except OutcomeUnknown:
        return "unknown"
    except RetryLater:
        return "busy"
    except Exception:  # one message does not hold up the others
        logger.exception("%s could not be finished", number)
        return "failed"
    return "sent"
