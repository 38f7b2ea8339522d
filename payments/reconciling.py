"""Finish what was begun: whatever an attempt left when its lease ended, and charges that came in for nothing.

Two of these at once, or one twice, change nothing more than one: each piece of work is claimed.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

from django.utils import timezone

from idempotency.exceptions import OutcomeUnknown, Refused, RetryLater
from idempotency.models import IdempotencyRecord

from . import notices
from .models import Payment, PaymentStatus
from .paying import pay
from .refunding import give_back, refund

logger = logging.getLogger("payments")

NOTHING: Final = "nothing new"


@dataclass(frozen=True)
class Finding:
    """What became of one piece of work."""

    operation: str
    key: str
    result: str
    """``applied`` (notices), ``paid``, ``known``, ``refund_due``, ``refunded``, ``returned``, the code of a
    refusal, ``unknown``, ``busy``, or ``failed`` where somebody must look."""


def reconcile() -> Iterator[Finding]:
    """Finish each unfinished payment and refund whose lease has ended, then give back what is due.

    Before that, notices find the orders and payments that they had to wait for.
    """
    for order_no in notices.waiting_orders():
        finding = _finding("payments.notices", order_no, partial(_take_waiting, order_no))
        if finding.result != NOTHING:
            yield finding
    for record in IdempotencyRecord.objects.unfinished().filter(operation__in=FINISH).order_by("created_at"):
        yield _finding(record.operation, record.key, partial(FINISH[record.operation], record.key))
    due = Payment.objects.filter(status=PaymentStatus.REFUND_DUE).order_by("pk")
    for payment_id in due.values_list("pk", flat=True):
        yield _finding("payments.return", str(payment_id), partial(_finish_return, str(payment_id)))


def _take_waiting(order_no: str) -> str:
    return "applied" if notices.take_waiting(order_no=order_no, now=timezone.now()) else NOTHING


def _finish_payment(key: str) -> str:
    return str(pay(order_no=key, method=None)["settled"])


def _finish_refund(key: str) -> str:
    order_no, refund_no = map(unquote, key.split("_"))
    refund(order_no=order_no, refund_no=refund_no, amount_minor=None)
    return "refunded"


def _finish_return(key: str) -> str:
    give_back(payment_id=int(key))
    return "returned"


FINISH: Final[dict[str, Callable[[str], str]]] = {
    "payments.pay": _finish_payment,
    "payments.refund": _finish_refund,
    "payments.return": _finish_return,
}


def _finding(operation: str, key: str, finish: Callable[[], str]) -> Finding:
    return Finding(operation, key, _result(operation, key, finish))


def _result(operation: str, key: str, finish: Callable[[], Any]) -> str:
    try:
        return str(finish())
    except Refused as refusal:
        return str(refusal.code)
    except OutcomeUnknown:
        return "unknown"
    except RetryLater:
        return "busy"
    except Exception:  # one piece of work does not hold up the others
        logger.exception("%s %s could not be finished", operation, key)
        return "failed"
