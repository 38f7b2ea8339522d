"""Gates within the sending of a text: where its process can die."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

from tests.scenarios.gates import pass_gate

POINTS: Final = (
    "sms_before_claim",
    "sms_after_claim",
    "sms_before_commit_of_begin",
    "sms_before_send",
    "sms_after_send",
    "sms_before_commit_of_settle",
    "sms_after_settle",
)
"""In the order of a text's life."""

SENT: Final = POINTS[POINTS.index("sms_after_send") :]


class TextGateMiddleware(MiddlewareMixin):
    """In the server: build the gates in when it starts."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        super().__init__(get_response)
        _build_gates()


def _build_gates() -> None:
    from idempotency.leased import Claim
    from idempotency.leases import Lease
    from notifications import sending
    from notifications.providers.sandbox import Sandbox

    Lease.take = _gated(Lease.take, before="sms_before_claim", after="")
    Claim.__init__ = _gated(Claim.__init__, before="", after="sms_after_claim")
    Claim.complete = _gated(Claim.complete, before="", after="sms_after_settle")
    sending._begin = _gated(sending._begin, before="", after="sms_before_commit_of_begin")
    sending._settle = _gated(sending._settle, before="", after="sms_before_commit_of_settle")
    Sandbox.send = _gated(Sandbox.send, before="sms_before_send", after="sms_after_send")


def _gated(call: Callable[..., Any], *, before: str, after: str) -> Callable[..., Any]:
    @wraps(call)
    def gated(*args: Any, **kwargs: Any) -> Any:
        pass_gate(before)
        answer = call(*args, **kwargs)
        pass_gate(after)
        return answer

    return gated
