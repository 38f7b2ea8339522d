"""What can be said instead of "sent".

Refused                       (of the library) for certain: nothing was sent, the window is free
├── SmsRejected               the provider said no for good: the number, the template
├── SmsUnavailable            the provider cannot send now, or could not be reached
└── NothingSent               what was begun came to nothing, for good
AlreadySent                   another attempt has sent it meanwhile
InvalidPhoneNumber            no number that can be called
"""

from typing import Final

from idempotency.exceptions import Refused


class SmsRejected(Refused):
    """The provider said no for good. To ask again without a change brings the same."""

    code = "sms_rejected"


class SmsUnavailable(Refused):
    """The provider is busy or could not be reached: nothing was sent, later it may be."""

    code = "sms_unavailable"


class NothingSent(Refused):
    """What an earlier attempt began came to nothing, for good; the next request begins anew."""

    code = "sms_not_sent"


class AlreadySent(Refused):
    """The message was sent by an attempt of which there is no record any more."""

    code = "sms_already_sent"


class InvalidPhoneNumber(Exception):
    """No number of any country, as it is spelt."""

    code = "invalid_phone_number"


REFUSALS: Final[dict[str, type[Refused]]] = {
    refusal.code: refusal for refusal in (SmsRejected, SmsUnavailable, NothingSent)
}
"""What a failed message can tell, by code: stored data."""
