"""Alipay's asynchronous notices: https://opendocs.alipay.com/open/270/105902."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import unquote_to_bytes
from zoneinfo import ZoneInfo

from django.http import HttpRequest, HttpResponse

from idempotency import fingerprints
from idempotency.webhooks import InvalidSignature, MalformedEvent, Refuse, WebhookEvent
from payments.models import Notice, NoticeKind
from payments.services import refund_no_of
from shop.money import minor_units

from . import rsa
from .providers import Heard, ProviderCallback
from .reading import optional_text, optional_time, text

UNSIGNED: Final = frozenset({b"sign", b"sign_type"})
CHARSETS: Final = frozenset({"utf-8", "gbk", "gb2312", "gb18030"})
MOST_FIELDS: Final = 200
CURRENCY: Final = "CNY"
CHINA: Final = ZoneInfo("Asia/Shanghai")


class AlipayCallback(ProviderCallback):
    """RSA2 over the decoded fields. Anything but the body ``success`` makes Alipay come again."""

    sender = "alipay"

    def get_event(self, request: HttpRequest) -> Heard:
        """Verify and read one notice."""
        fields = parse(request.body)
        verify(fields=fields, keys=self.config["public_keys"])
        data = decode(fields)
        identity = (data.get("app_id"), data.get("seller_id"))
        return Heard(
            id=text(data, "notify_id"),
            type=text(data, "trade_status"),
            data=data,
            notice=read(data),
            ours=identity == (self.config["app_id"], self.config["seller_id"]),
        )

    def acknowledge(self) -> HttpResponse:
        """Answer the seven letters that end it."""
        return HttpResponse("success", content_type="text/plain")

    def refuse(self, refusal: Refuse) -> HttpResponse:
        """Answer something else."""
        return HttpResponse("fail", status=refusal.status, content_type="text/plain")

    def get_fingerprint(self, event: WebhookEvent) -> bytes:
        """Leave out what differs in each repeat."""
        return fingerprints.of_value(dict(event.data), ignored=["notify_time"])


def parse(body: bytes) -> dict[bytes, bytes]:
    """Decode a form once, into bytes: nothing is guessed about its charset.

    :raises InvalidSignature: when a name comes twice (what was signed?), or there are too many.
    """
    if body.count(b"&") >= MOST_FIELDS:
        raise InvalidSignature("too many fields")
    pairs = [part.partition(b"=") for part in body.split(b"&") if part]
    fields = [(_unquoted(name), _unquoted(value)) for name, _, value in pairs]
    if any(count > 1 for count in Counter(name for name, _ in fields).values()):
        raise InvalidSignature("a field comes twice")
    return dict(fields)


def verify(*, fields: Mapping[bytes, bytes], keys: list[str]) -> None:
    """Check the signature of a notice; while Alipay's key is changed both the old and the new one count.

    :raises InvalidSignature: when there is none, it is of another kind or wrong, or there is no key.
    """
    if fields.get(b"sign_type") != b"RSA2":
        raise InvalidSignature("no RSA2 signature")
    signature = fields.get(b"sign", b"").decode("ascii", "replace")
    rsa.verify(keys=keys, signature=signature, message=signed_text(fields))


def signed_text(fields: Mapping[bytes, bytes]) -> bytes:
    """Return what is signed: the fields that are not empty, without the signature, by name."""
    signed = sorted((name, value) for name, value in fields.items() if name not in UNSIGNED and value)
    return b"&".join(name + b"=" + value for name, value in signed)


def decode(fields: Mapping[bytes, bytes]) -> dict[str, str]:
    """Return the signed fields as text, in the charset that they name."""
    charset = fields.get(b"charset", b"utf-8").decode("ascii", "replace").lower()
    if charset not in CHARSETS:
        raise MalformedEvent("an unknown charset")
    try:
        return {
            name.decode(charset): value.decode(charset)
            for name, value in fields.items()
            if name not in UNSIGNED
        }
    except UnicodeDecodeError as error:
        raise MalformedEvent(f"not {charset}") from error


def read(data: dict[str, str]) -> Notice:
    """Say in the shop's words what a notice tells; with a ``refund_fee``, a running total, it is a refund."""
    notice = Notice(
        kind=NoticeKind.OTHER,
        order_no=text(data, "out_trade_no"),
        payment_no=text(data, "trade_no"),
        amount_minor=_amount(data, "total_amount"),
        currency=CURRENCY,
        happened_at=_time(data, "gmt_payment") or _time(data, "notify_time"),
    )
    if data.get("refund_fee") and (refunded := _amount(data, "refund_fee")):
        notice.kind, notice.is_total = NoticeKind.REFUNDED, True
        notice.amount_minor = refunded
        notice.happened_at = _time(data, "gmt_refund") or notice.happened_at
        number = optional_text(data, "out_biz_no") or text(data, "notify_id")
        notice.refund_no = refund_no_of(order_no=notice.order_no, number=number)
    elif data["trade_status"] in {"TRADE_SUCCESS", "TRADE_FINISHED"}:
        notice.kind = NoticeKind.PAID
    return notice


def _unquoted(text: bytes) -> bytes:
    return unquote_to_bytes(text.replace(b"+", b" "))


def _amount(data: Mapping[str, Any], name: str) -> int:
    try:
        return minor_units(amount=text(data, name), currency=CURRENCY)
    except ValueError as error:
        raise MalformedEvent(f"{name} is no amount") from error


def _time(data: Mapping[str, Any], name: str) -> datetime | None:
    return optional_time(data, name, zone=CHINA)
