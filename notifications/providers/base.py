"""What the shop asks of those who bring messages. A real one is one file that implements it.

ProviderError
├── Rejected       a definite no, for good: no such number or template
├── Busy           a definite "not now": nothing was sent
│   └── Misconfigured   our account or our mistake: somebody must act
├── Unreachable    no connection: nothing was sent
└── NoAnswer       sent, and no usable answer, or one who cannot be asked: it may have gone out
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol


class ProviderError(Exception):
    """The call sent nothing that we know of."""


class Rejected(ProviderError):
    """A definite no, for good."""


class Busy(ProviderError):
    """A definite "not now": a limit is reached, an outage is announced. Nothing was sent."""


class Misconfigured(Busy):
    """The provider does not take what we say, or who we are. Nothing was sent; somebody must act."""


class Unreachable(ProviderError):
    """Nothing was sent: no connection, no name, no answer to the first packet."""


class NoAnswer(ProviderError):
    """A timeout, a broken connection, a 5xx or an odd answer after sending: it may have gone out."""


class Provider(Protocol):
    """Each raises ``Unreachable`` or ``NoAnswer`` where it got no answer."""

    is_once_by_key: bool
    """Whether a message that is handed over again under its key is sent once all the same."""

    def send(self, *, key: str, recipient: str, template: str, params: Mapping[str, str]) -> str:
        """Send a message; return the provider's number.

        :raises Rejected, Busy: when it was not sent.
        """

    def find(self, *, key: str, recipient: str, since: datetime) -> str | None:
        """Return the number of what was sent under ``key``; ``None`` when the provider knows nothing of it.

        ``since`` is the time of the last send attempt.

        :raises Rejected: when the message was refused; the question is not refused so.
        :raises NoAnswer: also when the provider cannot be asked, or refuses to tell.
        """

    def close(self, *, key: str) -> str | None:
        """See to it that nothing is sent under ``key`` any more; return what has been sent already.

        :raises NoAnswer: also when the provider has no such thing.
        """
