"""Receipts, when an order is paid. The service carries the key: the message may come twice."""

import logging
from typing import Any

from celery import shared_task

from idempotency.celery import IdempotentTask
from idempotency.exceptions import OutcomeUnknown

from . import windows
from .exceptions import InvalidPhoneNumber, NothingSent, SmsRejected, SmsUnavailable
from .models import Channel, Contact, Kind
from .phones import normalise
from .reconciling import reconcile
from .rules import Text
from .sending import send

logger = logging.getLogger("notifications")

RECEIPT = "order_paid"


class ReceiptTask(IdempotentTask):
    """What cannot be sent now is tried again, less and less often, for about a day."""

    abstract = True
    autoretry_for = (SmsUnavailable, NothingSent)
    max_retries = 600
    retry_backoff = 2  # seconds before the first retry; it doubles, and chance takes half of it on average
    retry_backoff_max = 300  # Redis delivers once more, and again, what waits beyond its visibility timeout


@shared_task(name="notifications.send_receipt_sms", base=ReceiptTask)
def send_receipt_sms(*, message_id: str, order_no: str, user_id: int, **rest: Any) -> str:
    """Tell the buyer by text; ``no contact`` where there is no number."""
    contact = Contact.objects.filter(user_id=user_id).first()
    if contact is None or not contact.phone:
        return "no contact"
    try:
        recipient = normalise(contact.phone)
    except InvalidPhoneNumber:
        logger.warning("user %s has no valid phone number", user_id)
        return "no contact"
    return _send(Text(recipient=recipient, template=RECEIPT, kind=Kind.RECEIPT, biz_id=order_no))


@shared_task(name="notifications.send_receipt_mail", base=ReceiptTask)
def send_receipt_mail(*, message_id: str, order_no: str, user_id: int, **rest: Any) -> str:
    """Tell the buyer by mail; ``no contact`` where there is no address."""
    contact = Contact.objects.filter(user_id=user_id).first()
    if contact is None or not contact.email:
        return "no contact"
    return _send(
        Text(
            recipient=contact.email,
            template=RECEIPT,
            kind=Kind.RECEIPT,
            biz_id=order_no,
            channel=Channel.EMAIL,
        )
    )


@shared_task(name="notifications.reconcile", base=IdempotentTask)
def reconcile_messages() -> int:
    """Finish what was begun; return how many messages were looked at."""
    return sum(1 for _ in reconcile())


def _send(text: Text) -> str:
    """Send; a definite no is the message's state, and nothing to try again, nor is what nobody will know."""
    try:
        return "duplicate" if send(text).is_duplicate else "sent"
    except SmsRejected as refusal:
        return refusal.code
    except OutcomeUnknown:
        if not windows.is_given_up(text):
            raise
        logger.warning("nobody knows whether the receipt %s was sent: staff decides", text.biz_id)
        return "unknown"
