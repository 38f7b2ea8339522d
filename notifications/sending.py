"""Send a text once, whatever the provider, the network and this process do."""

import logging
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.conf import settings

from idempotency.decorators import idempotent
from idempotency.exceptions import OutcomeUnknown
from idempotency.leased import Claim
from idempotency.values import Run

from . import windows
from .exceptions import REFUSALS, AlreadySent, NothingSent, SmsRejected, SmsUnavailable
from .models import Message, MessageStatus, Window
from .providers import provider
from .providers.base import Busy, Misconfigured, NoAnswer, Rejected, Unreachable
from .rules import Text

logger = logging.getLogger("notifications")


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """What became of a request to send."""

    number: str
    """Of the message."""

    sent_at: datetime
    """When the provider was asked."""

    is_duplicate: bool
    """Whether it had been sent before, so that nothing was sent now."""


def send(text: Text) -> Delivery:
    """Send a text, unless the same was sent in its window; see :mod:`~notifications.rules`.

    :raises SmsRejected, SmsUnavailable, NothingSent: for certain nothing was sent; the window is free.
    :raises OutcomeUnknown: when it may have been sent: a repeat asks the provider.
    :raises OperationInProgress: when the first is still at it.
    """
    message = windows.enter(text)
    if message.status == MessageStatus.SENT:
        return _delivery(message.number, is_duplicate=True)
    try:
        run: Run = deliver.run(number=message.number, asked=True)  # type: ignore[attr-defined]
    except AlreadySent:
        return _delivery(message.number, is_duplicate=True)
    return _delivery(message.number, is_duplicate=run.replayed or run.value["found"])


@idempotent(
    "notifications.send",
    key="number",
    fingerprint=None,
    lease=settings.NOTIFICATIONS_LEASE,
    wait=settings.NOTIFICATIONS_WAIT,
    retention=None,
)
def deliver(*, number: str, asked: bool, was_sent: bool | None = None, claim: Claim) -> dict[str, Any]:
    """Bring one message to its provider, once. A cut-off attempt is found again by the provider's key.

    ``asked=False`` finishes what was begun and sends nothing. ``was_sent`` is the word of somebody who has
    looked, and takes the place of the provider's.

    :returns: ``found``: whether an earlier attempt had sent it.
    :raises SmsRejected, SmsUnavailable, NothingSent: for certain; the message has failed.
    :raises OutcomeUnknown: when it may have been sent: the next call asks.
    """
    begun = claim.step("begin", partial(_begin, number, claim))
    try:
        ask = partial(_ask, begun, claim, asked) if was_sent is None else partial(_told, was_sent)
        answer = begun if "refused" in begun else claim.call("send", ask)
    except OutcomeUnknown:
        claim.step("doubt", partial(_doubt, number))
        raise
    if refusal := answer.get("refused"):
        claim.step("undo", partial(_undo, number, refusal))
        raise REFUSALS[refusal]
    return claim.complete(partial(_settle, number, answer, claim.attempts))


def _begin(number: str, claim: Claim) -> dict[str, Any]:
    """Leave something to be found, before anything is sent, and count the window from now on."""
    message = Message.objects.numbered(number).locked()
    if message.status == MessageStatus.FAILED:  # while we waited for the attempt that failed
        raise REFUSALS[message.failure]
    if message.status == MessageStatus.SENT:
        raise AlreadySent
    if not windows.begin_attempt(message):
        return {"refused": NothingSent.code}
    Message.objects.numbered(number).update(provider_key=claim.provider_key("send"))
    return {"number": number, "attempt": claim.attempts}


def _ask(begun: dict[str, Any], claim: Claim, asked: bool, key: str) -> dict[str, Any]:
    """Return what is certain: ``provider_no`` and the attempt that sent it, or the code of a refusal.

    :raises OutcomeUnknown: otherwise.
    """
    message = Message.objects.get(number=begun["number"])
    is_first = begun["attempt"] == claim.attempts
    knows_keys = provider(message.channel).is_once_by_key
    try:
        if not is_first:
            return _find_or_send(message, key, claim, asked=asked)
        return _hand_over(message, key, claim) if asked else {"refused": NothingSent.code}
    except Rejected as error:
        logger.warning("%s to %s was rejected: %s", message.number, message.masked_recipient, error)
        if is_first or knows_keys:
            return {"refused": SmsRejected.code}
        raise OutcomeUnknown from error  # not said of the earlier attempt, which may have sent it
    except (Busy, Unreachable) as error:
        if isinstance(error, Misconfigured):
            logger.error("the provider of %s does not take what we say: %s", message.channel, error)
        if is_first:
            return {"refused": SmsUnavailable.code}
        raise OutcomeUnknown from error  # nothing was sent now, but perhaps before
    except NoAnswer as error:
        raise OutcomeUnknown from error


def _hand_over(message: Message, key: str, claim: Claim) -> dict[str, Any]:
    provider_no = provider(message.channel).send(
        key=key, recipient=message.recipient, template=message.template, params=params_of(message)
    )
    return {"provider_no": provider_no, "attempt": claim.attempts}


def _find_or_send(message: Message, key: str, claim: Claim, *, asked: bool) -> dict[str, Any]:
    """Take up what an earlier attempt left: ask first; send only where that cannot become a second text."""
    gateway = provider(message.channel)
    found = gateway.find(key=key, recipient=message.recipient, since=_last_attempt(message))
    claim.heartbeat()
    may_send = found is None and asked and gateway.is_once_by_key
    if may_send and claim.step(f"attempt {claim.attempts}", lambda: windows.begin_attempt(message)):
        return _hand_over(message, key, claim)
    if found is None:
        # From here on the earlier request, wherever it still is, is refused: the window may be free.
        found = gateway.close(key=key)
    return {"refused": NothingSent.code} if found is None else {"provider_no": found, "attempt": None}


def _last_attempt(message: Message) -> datetime:
    return message.attempted_at or message.created_at


def _told(was_sent: bool, key: str) -> dict[str, Any]:
    return {"provider_no": "", "attempt": None} if was_sent else {"refused": NothingSent.code}


def params_of(message: Message) -> dict[str, str]:
    """Return what the template may say."""
    members = {"biz_id": message.biz_id, "campaign_id": message.campaign_id}
    return {name: value for name, value in members.items() if value}


def _doubt(number: str) -> None:
    Message.objects.numbered(number).transition(to=MessageStatus.UNKNOWN)


def _undo(number: str, refusal: str) -> None:
    message = Message.objects.numbered(number).locked()
    Message.objects.numbered(number).transition(to=MessageStatus.FAILED, failure=refusal)
    Window.objects.free(message)


def _settle(number: str, answer: dict[str, Any], attempt: int) -> dict[str, Any]:
    message = Message.objects.numbered(number).locked()
    Message.objects.numbered(number).transition(
        to=MessageStatus.SENT, provider_no=answer["provider_no"], sent_at=message.attempted_at
    )
    return {"found": answer["attempt"] != attempt}


def _delivery(number: str, *, is_duplicate: bool) -> Delivery:
    sent_at = Message.objects.values_list("sent_at", flat=True).get(number=number)
    return Delivery(number=number, sent_at=sent_at, is_duplicate=is_duplicate)
