"""What can be said instead of "paid" or "refunded".

Refused                       (of the library) for certain: nothing happened, the key is free
├── PaymentDeclined           the provider said no; any method may be tried again
├── ProviderUnreachable       the provider could not be reached, so nothing was sent
├── NothingCharged            what was begun came to nothing, and nobody asks for it now
├── NotPayable                the order's status does not allow it any more
├── RefundExceedsPayment      more than what is left of the payment
├── RefundDeclined            the provider refused to give the money back
└── RefundNotPossible         the order has no payment that could be given back
PaymentMismatch               the provider tells another amount, currency or order than the shop knows
RefundMismatch                the refund number is known with another amount
"""

from idempotency.exceptions import Refused
from idempotency.transitions import InvalidTransition


class PaymentDeclined(Refused):
    """The provider said no. The order waits for another try, by any method."""

    code = "payment_declined"


class ProviderUnreachable(Refused):
    """There was no connection to the provider: nothing was sent."""

    code = "provider_unreachable"


class NothingCharged(Refused):
    """What an earlier attempt began came to nothing, for good; nobody is there who asks for more."""

    code = "nothing_charged"


class NotPayable(Refused):
    """The order's status does not allow a payment any more; money that came in goes back."""

    code = InvalidTransition.code


class RefundNotPossible(Refused):
    """The order has no payment that could be given back."""

    code = InvalidTransition.code


class RefundExceedsPayment(Refused):
    """More was asked for than what is left of the payment."""

    code = "refund_exceeds_payment"


class RefundDeclined(Refused):
    """The provider refused to give the money back."""

    code = "refund_declined"


class PaymentMismatch(Exception):
    """What the provider tells about a payment is not what the shop knows; nothing was changed."""

    code = "payment_mismatch"


class RefundMismatch(Exception):
    """The refund number is known with another amount; nothing was changed."""

    code = "refund_number_reused"
