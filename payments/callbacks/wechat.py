"""WeChat Pay's notices (API v3): https://pay.weixin.qq.com/doc/v3/merchant/4012071382."""

from base64 import b64decode
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.http import HttpRequest, HttpResponse, JsonResponse

from idempotency.webhooks import InvalidSignature, MalformedEvent, Refuse
from payments.models import Notice, NoticeKind
from payments.services import refund_no_of

from . import rsa
from .providers import Heard, ProviderCallback, check_age
from .reading import child, json_object, optional_currency, optional_text, optional_time, text, whole_number

SIGNATURE_TYPE: Final = "WECHATPAY2-SHA256-RSA2048"
ALGORITHM: Final = "AEAD_AES_256_GCM"
STATES: Final = {"SUCCESS": NoticeKind.PAID, "PAYERROR": NoticeKind.FAILED}
CURRENCY: Final = "CNY"
"""Of a payment that names none; a refund has the currency of its payment."""


class WeChatCallback(ProviderCallback):
    """RSA over time stamp, nonce and body, by the platform key that the serial names; then AES-256-GCM."""

    sender = "wechat"

    def get_event(self, request: HttpRequest) -> Heard:
        """Verify, decrypt and read one notice."""
        verify(headers=request.headers, body=request.body, keys=self.config["platform_keys"], now=self.now)
        envelope = json_object(request.body)
        resource = decrypt(resource=child(envelope, "resource"), keys=self.config["api_keys"])
        return Heard(
            id=text(envelope, "id"),
            type=text(envelope, "event_type"),
            data={"event_type": envelope["event_type"], "resource": resource},
            notice=read(resource),
            ours=self._is_ours(resource),
        )

    def acknowledge(self) -> HttpResponse:
        """Answer 204: nothing more to say."""
        response = HttpResponse(status=204)
        del response["Content-Type"]
        return response

    def refuse(self, refusal: Refuse) -> HttpResponse:
        """Answer the code that WeChat Pay logs."""
        return JsonResponse({"code": "FAIL", "message": refusal.reason}, status=refusal.status)

    def _is_ours(self, resource: dict[str, Any]) -> bool:
        app = resource.get("appid", self.config["appid"])  # a refund names none
        return (resource.get("mchid"), app) == (self.config["mchid"], self.config["appid"])


def verify(*, headers: Mapping[str, str], body: bytes, keys: Mapping[str, str], now: datetime) -> None:
    """Check the signature of a notice. ``keys`` are the platform's, by serial: several while one is rotated.

    WeChat Pay also sends false signatures (``WECHATPAY/SIGNTEST/…``), to see whether they are refused.

    :raises InvalidSignature: when it is missing or wrong, the stamp too old, or the serial unknown.
    """
    stamp, nonce, serial, signature = (
        headers.get(f"Wechatpay-{name}", "") for name in ("Timestamp", "Nonce", "Serial", "Signature")
    )
    if not (nonce and signature) or headers.get("Wechatpay-Signature-Type", SIGNATURE_TYPE) != SIGNATURE_TYPE:
        raise InvalidSignature("no signature")
    check_age(stamp=stamp, now=now)
    if not (key := keys.get(serial)):
        raise InvalidSignature("no key has this serial")
    rsa.verify(keys=[key], signature=signature, message=signed_text(stamp=stamp, nonce=nonce, body=body))


def signed_text(*, stamp: str, nonce: str, body: bytes) -> bytes:
    """Return what is signed."""
    return b"%s\n%s\n%s\n" % (stamp.encode(), nonce.encode(), body)


def decrypt(*, resource: dict[str, Any], keys: list[str]) -> dict[str, Any]:
    """Return the content of a notice. ``keys`` are our APIv3 keys of 32 bytes: several while one is rotated.

    :raises MalformedEvent: when none of them opens it.
    """
    if resource.get("algorithm") != ALGORITHM:
        raise MalformedEvent("an unknown algorithm")
    nonce, label = text(resource, "nonce").encode(), optional_text(resource, "associated_data").encode()
    try:
        sealed = b64decode(resource["ciphertext"], validate=True)
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedEvent("no ciphertext") from error
    for key in keys:
        try:
            return json_object(AESGCM(key.encode()).decrypt(nonce, sealed, label))
        except (InvalidTag, ValueError):  # another key, or a nonce that no key takes
            continue
    raise MalformedEvent("no known key opens this")


def read(resource: dict[str, Any]) -> Notice:
    """Say in the shop's words what a notice tells; its state decides, not the event's name."""
    notice = Notice(
        kind=NoticeKind.OTHER,
        order_no=text(resource, "out_trade_no"),
        payment_no=optional_text(resource, "transaction_id"),
        currency=optional_currency(resource, "amount", "currency"),
        happened_at=optional_time(resource, "success_time"),
    )
    if "refund_status" in resource:
        notice.amount_minor = whole_number(resource, "amount", "refund", least=1)
        number = text(resource, "out_refund_no")
        notice.refund_no = refund_no_of(order_no=notice.order_no, number=number)
        notice.provider_refund_no = text(resource, "refund_id")
        if resource["refund_status"] == "SUCCESS":
            notice.kind = NoticeKind.REFUNDED
        return notice
    # what the buyer paid may be less, by the provider's own coupons: total is what the order is about
    notice.amount_minor = whole_number(resource, "amount", "total")
    notice.currency = notice.currency or CURRENCY
    notice.kind = STATES.get(optional_text(resource, "trade_state"), NoticeKind.OTHER)
    if notice.kind != NoticeKind.OTHER:
        notice.payment_no = text(resource, "transaction_id")
    return notice
