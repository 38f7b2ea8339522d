"""Who may try to buy: asked before anything is claimed, so that most are turned away without the database."""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Final

from idempotency.exceptions import StoreUnavailable
from stock.exceptions import InsufficientStock

from . import gate, reconciling
from .exceptions import AlreadyBought, SaleNotBegun
from .gate import Pass, Verdict

REFUSALS: Final = {
    Verdict.ALREADY_BOUGHT: AlreadyBought,
    Verdict.NOT_BEGUN: SaleNotBegun,
    Verdict.SOLD_OUT: InsufficientStock,
}


def mark_of(key: str) -> str:
    """Return what gate and ticket know a key by."""
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@contextmanager
def passed(*, sku: str, user_id: int, mark: str) -> Iterator[None]:
    """Let the caller through the gate, around the transaction that buys; outside any other.

    What was set aside is given back when the block raises, unless its commit is in doubt: then the
    reconciler finds out.

    :raises AlreadyBought, SaleNotBegun, InsufficientStock: at the door; no database was asked.
    """
    admitted = gate.admit(sku=sku, user_id=user_id, mark=mark)
    if refusal := REFUSALS.get(admitted.verdict):
        raise refusal(sku)
    if admitted.verdict is Verdict.MISSING:
        reconciling.refresh(sku)
    try:
        yield
    except StoreUnavailable:
        raise
    except InsufficientStock:
        _give_back(admitted)
        reconciling.refresh(sku)  # the gate had let in more than there are
        raise
    except BaseException:
        _give_back(admitted)
        raise


def _give_back(admitted: Pass) -> None:
    if admitted.verdict in (Verdict.ADMITTED, Verdict.UNKNOWN):
        gate.give_back(admitted)
