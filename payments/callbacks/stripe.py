"""Stripe's webhooks: https://docs.stripe.com/webhooks#verify-manually."""

import hmac
from datetime import datetime
from hashlib import sha256
from typing import Any

from django.http import HttpRequest

from idempotency.webhooks import InvalidSignature
from payments.models import Notice, NoticeKind

from .providers import Heard, ProviderCallback, check_age
from .reading import child, currency, json_object, optional_text, text, unix_time, whole_number


class StripeCallback(ProviderCallback):
    """HMAC over time stamp and body; while a secret is being rotated both the old and the new one count."""

    sender = "stripe"

    def get_event(self, request: HttpRequest) -> Heard:
        """Verify and read one event."""
        verify(
            body=request.body,
            header=request.headers.get("Stripe-Signature", ""),
            secrets=self.config["secrets"],
            now=self.now,
        )
        data = json_object(request.body)
        notice = read(data)
        ours = data.get("livemode") is self.config["livemode"]
        return Heard(id=text(data, "id"), type=text(data, "type"), data=data, notice=notice, ours=ours)


def verify(*, body: bytes, header: str, secrets: list[str], now: datetime) -> None:
    """Check a ``Stripe-Signature`` header (``t=…,v1=…``, a ``v1`` for each secret that Stripe signs with).

    :raises InvalidSignature: when no ``v1`` is right, the stamp is too old, or there is no secret.
    """
    parts = [part.strip().partition("=") for part in header.split(",")]
    stamps = [value for name, _, value in parts if name == "t"]
    signatures = [value for name, _, value in parts if name == "v1"]
    if len(stamps) != 1 or not signatures:
        raise InvalidSignature("no time stamp or no v1 signature")
    check_age(stamp=stamps[0], now=now)
    right = [mac(stamp=stamps[0], body=body, secret=secret) for secret in secrets if secret]
    if not any(hmac.compare_digest(a.encode(), b.encode()) for a in right for b in signatures):
        raise InvalidSignature("no known secret has signed this")


def mac(*, stamp: str, body: bytes, secret: str) -> str:
    """Return the ``v1`` signature of a body."""
    return hmac.new(secret.encode(), stamp.encode() + b"." + body, sha256).hexdigest()


def read(event: dict[str, Any]) -> Notice | None:
    """Say in the shop's words what an event tells; ``None`` where it is nothing to the shop."""
    reader = _READERS.get(text(event, "type"))
    if reader is None:
        return None
    notice = reader(event, child(event, "data", "object"))
    notice.happened_at = unix_time(event, "created")
    return notice


def _intent(kind: NoticeKind, amount: str) -> Any:
    def intent(event: dict[str, Any], intent: dict[str, Any]) -> Notice:
        return Notice(
            kind=kind,
            order_no=optional_text(intent, "metadata", "order_no"),
            payment_no=text(intent, "id"),
            amount_minor=whole_number(intent, amount),
            currency=currency(intent, "currency"),
        )

    return intent


def _refunded(event: dict[str, Any], charge: dict[str, Any]) -> Notice:
    return Notice(
        kind=NoticeKind.REFUNDED,
        order_no=optional_text(charge, "metadata", "order_no"),
        payment_no=optional_text(charge, "payment_intent"),
        refund_no=text(event, "id"),
        amount_minor=whole_number(charge, "amount_refunded"),
        is_total=True,
        currency=currency(charge, "currency"),
    )


_READERS = {
    "payment_intent.succeeded": _intent(NoticeKind.PAID, "amount_received"),
    "payment_intent.payment_failed": _intent(NoticeKind.FAILED, "amount"),
    "charge.refunded": _refunded,
}
