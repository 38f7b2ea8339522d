"""What somebody has found out about a message of which its provider does not tell."""

from contextlib import suppress

from idempotency.exceptions import Refused, RetryLater

from .models import Message, MessageStatus
from .sending import deliver


def decide(*, number: str, was_sent: bool) -> bool:
    """Settle a message of which nobody knows; one that was not sent frees its window.

    Takes the message's own claim: whoever is asking the provider at this moment comes first.

    :returns: whether it is settled so now; ``False``, and nothing has changed, where it was not unknown.
    """
    message = Message.objects.numbered(number)
    if not message.filter(status=MessageStatus.UNKNOWN).exists():
        return False
    with suppress(Refused, RetryLater):  # the row tells
        deliver(number=number, asked=False, was_sent=was_sent)
    return message.filter(status=MessageStatus.SENT if was_sent else MessageStatus.FAILED).exists()
