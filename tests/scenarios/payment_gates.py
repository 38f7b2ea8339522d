"""Gates within a payment: where its process can die, or stand still."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

from tests.scenarios.gates import pass_gate

PAY_POINTS: Final = (
    "pay_before_claim",
    "pay_after_claim",
    "pay_before_commit_of_begin",
    "pay_before_charge",
    "pay_after_charge",
    "pay_before_commit_of_settle",
    "pay_after_settle",
)
"""In the order of a payment's life."""

CHARGED: Final = PAY_POINTS[PAY_POINTS.index("pay_after_charge") :]
SETTLED: Final = ("pay_after_settle",)


class PaymentGateMiddleware(MiddlewareMixin):
    """In the server: build the gates in when it starts."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        super().__init__(get_response)
        _build_gates()


def _build_gates() -> None:
    from idempotency.leased import Claim
    from idempotency.leases import Lease
    from payments import paying
    from payments.providers.sandbox import Sandbox

    Lease.take = _gated(Lease.take, before="pay_before_claim", after="")
    Claim.__init__ = _gated(Claim.__init__, before="", after="pay_after_claim")
    Claim.complete = _gated(Claim.complete, before="", after="pay_after_settle")
    paying._begin = _gated(paying._begin, before="", after="pay_before_commit_of_begin")
    paying._settle = _gated(paying._settle, before="", after="pay_before_commit_of_settle")
    Sandbox.find = _gated(Sandbox.find, before="pay_before_find", after="")
    Sandbox.charge = _gated(Sandbox.charge, before="pay_before_charge", after="pay_after_charge")


def _gated(call: Callable[..., Any], *, before: str, after: str) -> Callable[..., Any]:
    @wraps(call)
    def gated(*args: Any, **kwargs: Any) -> Any:
        pass_gate(before)
        answer = call(*args, **kwargs)
        pass_gate(after)
        return answer

    return gated
