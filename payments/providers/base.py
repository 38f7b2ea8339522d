"""What the shop asks of a payment provider: four calls. A real one is one file that implements them.

ProviderError
├── Declined       the provider's own "no", for certain: no money moved and none will, under this key
├── Unreachable    no connection: nothing was sent
└── NoAnswer       sent, and no usable answer: the money may have moved
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


class ProviderError(Exception):
    """The call brought no money movement that we know of."""


class Declined(ProviderError):
    """A definite no."""


class Unreachable(ProviderError):
    """Nothing was sent: no connection, no name, no answer to the first packet."""


class NoAnswer(ProviderError):
    """A timeout, a broken connection or a 5xx after sending: only asking again tells."""


@dataclass(frozen=True, kw_only=True)
class Charge:
    """Money that came in, as the provider tells it."""

    payment_no: str
    """The provider's number."""

    amount_minor: int
    currency: str
    paid_at: datetime


class Provider(Protocol):
    """Each call may be made again with the same arguments and then changes nothing more.

    All amounts are whole minor units. Each raises ``Unreachable`` or ``NoAnswer`` where it got no answer.
    """

    def charge(self, *, key: str, order_no: str, amount_minor: int, currency: str) -> Charge:
        """Take the money, once for each ``key``.

        :raises Declined: when it is refused.
        """

    def find(self, *, key: str) -> Charge | None:
        """Return what was charged under ``key``; ``None`` when the provider knows nothing of it.

        :raises Declined: when it was refused.
        """

    def close(self, *, key: str) -> Charge | None:
        """See to it that nothing is charged under ``key`` any more; return what has been charged already.

        Also a request that is still on its way is refused when it arrives.
        """

    def refund(self, *, payment_no: str, number: str, amount_minor: int, currency: str) -> str:
        """Give money of one charge back, once for each ``number``; return the provider's number.

        :raises Declined: when it is refused.
        """
