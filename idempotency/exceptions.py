"""What can be said instead of an outcome.

IdempotencyError
├── KeyMissing                a key is required and none was sent
├── KeyInvalid                the key is malformed
├── KeyReused                 the key belongs to another request
├── OutcomeUnknown            the other side may or may not have done it
└── RetryLater                repeat with the same key, later
    ├── OperationInProgress   the same operation is running now
    ├── ClaimLost             a successor has taken the operation over
    ├── StoreUnavailable      the claim could not be made, or the commit is in doubt
    └── DuplicateSubmission   the same was asked a moment ago, without a key or under another one

Refused                       a handler's own "no", for certain: nothing happened
BrokerUnavailable             the broker cannot be reached, or did not confirm in time
UnknownTopic                  a message of a topic that has no entry in the routes
"""

from datetime import timedelta


class IdempotencyError(Exception):
    """A refusal: the handler's writes, if it ran at all, are rolled back.

    ``code`` is the stable name that clients and the ``refused`` signal see.
    """

    code = "idempotency_error"


class KeyMissing(IdempotencyError):
    """A key is required and none was sent. Send one, and the same one on each retry."""

    code = "idempotency_key_missing"


class KeyInvalid(IdempotencyError):
    """The key is malformed; nothing was hashed or stored. The message says what is wrong."""

    code = "idempotency_key_invalid"


class KeyReused(IdempotencyError):
    """The key was used before for another request. Use a fresh key for a new operation."""

    code = "idempotency_key_reused"


class RetryLater(IdempotencyError):
    """Repeat with the same key, after ``retry_after``."""

    def __init__(self, retry_after: timedelta) -> None:
        super().__init__(retry_after)
        self.retry_after = retry_after


class OperationInProgress(RetryLater):
    """The same operation is running now. A later repeat gets its outcome."""

    code = "operation_in_progress"


class StoreUnavailable(RetryLater):
    """The claim could not be made, or the commit is in doubt: only a repeat with the same key tells."""

    code = "store_unavailable"


class ClaimLost(RetryLater):
    """The lease ended and a successor took over; what the late owner had not committed is rolled back."""

    code = "claim_lost"


class DuplicateSubmission(RetryLater):
    """The same caller asked the same a moment ago, without a key or under another one. Nothing was done."""

    code = "duplicate_submission"


class OutcomeUnknown(IdempotencyError):
    """The other side may or may not have done its part: a timeout, say. Raise it from a leased handler.

    The lease ends at once; the next attempt asks again, with the same key for the other side. What the
    client is told of it is never kept.
    """

    code = "outcome_unknown"


class Refused(Exception):
    """A leased handler's own "no", for certain: nothing happened outside. Derive your refusals from it.

    The claim is forgotten and the key is free; the next attempt is a new one towards the outside too.
    """


class BrokerUnavailable(Exception):
    """The broker cannot be reached, or did not confirm in time. Raise it from a sender of outbox messages.

    The message is sent later, however often that takes: it is not the message's fault.
    """


class UnknownTopic(LookupError):
    """The topic has no entry in ``IDEMPOTENCY_OUTBOX_ROUTES``: nobody would ever hear of the message."""
