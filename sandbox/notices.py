"""What the providers send to the shop: signed as Alipay, WeChat Pay and Stripe sign.

Each function returns one request: the body and its headers. The event's number is a digest of what it says,
so that the same notice sent again is the same event.
"""

import hmac
import json
import time
from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from hashlib import sha256
from secrets import token_hex
from typing import Any, Final
from urllib.parse import urlencode

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from .secrets import APP_ID, APPID, MCHID, SELLER_ID, SERIAL

Notice = tuple[bytes, dict[str, str]]

CHINA: Final = timezone(timedelta(hours=8))
KINDS: Final = ("paid", "failed", "refunded")


def alipay(kind: str, charge: Mapping[str, Any], secrets: Mapping[str, str]) -> Notice:
    """A form, signed over its fields in the order of their names."""
    told_at = datetime.fromisoformat(charge["paid_at"]).astimezone(CHINA).strftime("%Y-%m-%d %H:%M:%S")
    fields = {
        "notify_id": _number(kind, charge),
        "notify_time": datetime.now(CHINA).strftime("%Y-%m-%d %H:%M:%S"),
        "trade_status": "WAIT_BUYER_PAY" if kind == "failed" else "TRADE_SUCCESS",
        "app_id": APP_ID,
        "seller_id": SELLER_ID,
        "out_trade_no": charge["order_no"],
        "trade_no": charge["payment_no"],
        "total_amount": _yuan(charge["amount_minor"]),
        "gmt_payment": told_at,
        "charset": "utf-8",
        "version": "1.0",
    }
    if kind == "refunded":
        last = charge["refunds"][-1]
        total = sum(refund["amount_minor"] for refund in charge["refunds"])
        fields |= {"refund_fee": _yuan(total), "out_biz_no": last["number"], "gmt_refund": told_at}
    text = "&".join(f"{name}={value}" for name, value in sorted(fields.items()))
    fields |= {"sign_type": "RSA2", "sign": _sign(secrets["private"], text.encode())}
    return urlencode(fields).encode(), {"Content-Type": "application/x-www-form-urlencoded"}


def wechat(kind: str, charge: Mapping[str, Any], secrets: Mapping[str, str]) -> Notice:
    """JSON with an encrypted resource, signed over time stamp, nonce and body."""
    told_at = datetime.fromisoformat(charge["paid_at"]).astimezone(CHINA).isoformat(timespec="seconds")
    resource = {
        "mchid": MCHID,
        "out_trade_no": charge["order_no"],
        "transaction_id": charge["payment_no"],
        "success_time": told_at,
        "amount": {"total": charge["amount_minor"], "currency": charge["currency"]},
    }
    if kind == "refunded":
        last = charge["refunds"][-1]
        resource |= {"out_refund_no": last["number"], "refund_id": last["refund_no"]}
        resource["refund_status"] = "SUCCESS"
        resource["amount"]["refund"] = last["amount_minor"]
    else:
        resource |= {"appid": APPID, "trade_state": "SUCCESS" if kind == "paid" else "PAYERROR"}
    nonce, name = token_hex(6), "refund" if kind == "refunded" else "transaction"
    sealed = AESGCM(secrets["api_key"].encode()).encrypt(
        nonce.encode(), json.dumps(resource).encode(), name.encode()
    )
    document = {
        "id": _number(kind, charge),
        "event_type": "REFUND.SUCCESS" if kind == "refunded" else "TRANSACTION.SUCCESS",
        "resource_type": "encrypt-resource",
        "resource": {
            "original_type": name,
            "algorithm": "AEAD_AES_256_GCM",
            "associated_data": name,
            "nonce": nonce,
            "ciphertext": b64encode(sealed).decode(),
        },
    }
    body, stamp = json.dumps(document).encode(), str(int(time.time()))
    signed = b"%s\n%s\n%s\n" % (stamp.encode(), nonce.encode(), body)
    return body, {
        "Content-Type": "application/json",
        "Wechatpay-Timestamp": stamp,
        "Wechatpay-Nonce": nonce,
        "Wechatpay-Serial": SERIAL,
        "Wechatpay-Signature": _sign(secrets["private"], signed),
        "Wechatpay-Signature-Type": "WECHATPAY2-SHA256-RSA2048",
    }


def stripe(kind: str, charge: Mapping[str, Any], secrets: Mapping[str, str]) -> Notice:
    """JSON, signed by an HMAC over time stamp and body."""
    told_at = int(datetime.fromisoformat(charge["paid_at"]).timestamp())
    content = {"currency": charge["currency"].lower(), "metadata": {"order_no": charge["order_no"]}}
    if kind == "refunded":
        total = sum(refund["amount_minor"] for refund in charge["refunds"])
        content |= {"id": f"ch_{charge['payment_no']}", "payment_intent": charge["payment_no"]}
        content |= {"amount_refunded": total}
    else:
        content |= {"id": charge["payment_no"], "amount": charge["amount_minor"]}
        content |= {"amount_received": charge["amount_minor"] if kind == "paid" else 0}
    names = {
        "paid": "payment_intent.succeeded",
        "failed": "payment_intent.payment_failed",
        "refunded": "charge.refunded",
    }
    document = {
        "id": f"evt_{_number(kind, charge)}",
        "object": "event",
        "type": names[kind],
        "created": told_at,
        "livemode": False,
        "data": {"object": content},
    }
    body, stamp = json.dumps(document).encode(), str(int(time.time()))
    mac = hmac.new(secrets["secret"].encode(), f"{stamp}.".encode() + body, sha256).hexdigest()
    return body, {"Content-Type": "application/json", "Stripe-Signature": f"t={stamp},v1={mac}"}


MAKERS: Final = {"alipay": alipay, "wechat": wechat, "stripe": stripe}


def _number(kind: str, charge: Mapping[str, Any]) -> str:
    told = [kind, charge["payment_no"], len(charge["refunds"]) if kind == "refunded" else 0]
    return sha256(json.dumps(told).encode()).hexdigest()[:24]


def _yuan(amount_minor: int) -> str:
    return f"{Decimal(amount_minor).scaleb(-2):f}"


def _sign(private: str, message: bytes) -> str:
    key = load_pem_private_key(private.encode(), password=None)
    assert isinstance(key, RSAPrivateKey)
    return b64encode(key.sign(message, PKCS1v15(), SHA256())).decode()
