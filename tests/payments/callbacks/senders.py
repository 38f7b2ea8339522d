"""The three providers, with keys of their own: they sign and send what the files in tests/data/webhooks hold.

How each text is signed is spelled out here once more, apart from the shop's own code.
"""

import hmac
import json
import time
from base64 import b64encode
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote_plus

import httpx
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.test import Client

DATA = Path(__file__).parents[2] / "data" / "webhooks"
KEEP: Any = object()


@cache
def key_pair(name: str) -> RSAPrivateKey:
    """A real key pair; each name has its own."""
    return generate_private_key(public_exponent=65537, key_size=2048)


def public_pem(name: str) -> str:
    return key_pair(name).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def rsa_sign(message: bytes, name: str) -> str:
    return b64encode(key_pair(name).sign(message, PKCS1v15(), SHA256())).decode()


def file(provider: str, name: str) -> bytes:
    (path,) = (DATA / provider).glob(f"{name}_*")
    return path.read_bytes()


@dataclass(frozen=True)
class Remote:
    """Sends over HTTP to a real server, as the test client does to this process."""

    url: str

    def post(self, path: str, body: bytes, *, content_type: str, headers: dict[str, str]) -> httpx.Response:
        with httpx.Client(base_url=self.url, timeout=30, trust_env=False) as client:
            return client.post(path, content=body, headers={**headers, "Content-Type": content_type})


@dataclass(kw_only=True)
class Sender:
    """Sends one provider's callbacks, as Django's test client does; CSRF is checked where it applies."""

    path: str = ""
    client: Any = field(default_factory=lambda: Client(enforce_csrf_checks=True))

    def post(self, body: bytes, content_type: str, headers: dict[str, str]) -> Any:
        return self.client.post(self.path, body, content_type=content_type, headers=headers)


@dataclass(kw_only=True)
class Stripe(Sender):
    path: str = "/api/payments/callbacks/stripe"
    secret: str = "whsec_of_the_tests"

    def send(
        self, name: str, *, body: bytes | None = None, header: str | None = KEEP, at: float | None = None
    ) -> Any:
        """Send a file, or ``body``; ``header=None`` sends no signature."""
        body = file("stripe", name) if body is None else body
        header = self.sign(body, at=at) if header is KEEP else header
        return self.post(
            body, "application/json; charset=utf-8", {} if header is None else {"Stripe-Signature": header}
        )

    def sign(
        self, body: bytes, *, at: float | None = None, secret: str | None = None, scheme: str = "v1"
    ) -> str:
        stamp = str(int(time.time() if at is None else at))
        mac = hmac.new((secret or self.secret).encode(), stamp.encode() + b"." + body, sha256).hexdigest()
        return f"t={stamp},{scheme}={mac}"

    @staticmethod
    def is_ack(answer: Any) -> bool:
        return 200 <= answer.status_code < 300


@dataclass(kw_only=True)
class Alipay(Sender):
    path: str = "/api/payments/callbacks/alipay"
    key: str = "alipay"

    def send(self, name: str, **changes: str) -> Any:
        """Send a file, its fields changed; changed ones are signed as they are sent."""
        return self.post(self.body(name, **changes), "application/x-www-form-urlencoded; charset=utf-8", {})

    def body(self, name: str, **changes: str) -> bytes:
        fields = (
            dict(parse_qsl(file("alipay", name).decode(), keep_blank_values=True, strict_parsing=True))
            | changes
        )
        if fields.get("sign") == "__SIGN__":
            fields["sign"] = self.sign(fields)
        return "&".join(f"{name}={quote_plus(value)}" for name, value in fields.items()).encode()

    def sign(self, fields: dict[str, str]) -> str:
        signed = sorted(name for name, value in fields.items() if name not in ("sign", "sign_type") and value)
        return rsa_sign("&".join(f"{name}={fields[name]}" for name in signed).encode(), self.key)

    @staticmethod
    def is_ack(answer: Any) -> bool:
        told = (answer.status_code, answer.content, answer.headers["Content-Type"])
        return told == (200, b"success", "text/plain")


@dataclass(kw_only=True)
class WeChat(Sender):
    path: str = "/api/payments/callbacks/wechat"
    key: str = "wechat"
    api_key: str = "0123456789abcdef0123456789abcdef"
    serial: str = "TESTPLATFORMSERIAL0001"

    def send(
        self, name: str, *, resource: dict[str, Any] | None = None, event_id: str = "", **headers: str
    ) -> Any:
        """Send a file; ``resource`` changes what is encrypted, ``headers`` what is sent beside it."""
        body, signed = self.message(name, resource=resource, event_id=event_id)
        signed |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self.post(body, signed.pop("Content-Type"), signed)

    def message(
        self, name: str, *, resource: dict[str, Any] | None = None, event_id: str = ""
    ) -> tuple[bytes, dict[str, str]]:
        case = json.loads(file("wechat", name))
        envelope, headers = case["body"], case["headers"]
        envelope["id"] = event_id or envelope["id"]
        text = json.dumps({**case["resource_plaintext"], **(resource or {})}, ensure_ascii=False).encode()
        sealed = envelope["resource"]
        sealed["ciphertext"] = self.encrypt(text, sealed["nonce"], sealed["associated_data"])
        body = json.dumps(envelope, ensure_ascii=False).encode()
        if headers["Wechatpay-Timestamp"] == "__NOW__":
            headers["Wechatpay-Timestamp"] = str(int(time.time()))
        if headers.get("Wechatpay-Signature") == "__SIGN__":
            headers["Wechatpay-Signature"] = self.sign(headers, body)
        if "Wechatpay-Serial" in headers:
            headers["Wechatpay-Serial"] = self.serial
        return body, headers

    def encrypt(self, text: bytes, nonce: str, label: str) -> str:
        return b64encode(AESGCM(self.api_key.encode()).encrypt(nonce.encode(), text, label.encode())).decode()

    def sign(self, headers: dict[str, str], body: bytes) -> str:
        text = f"{headers['Wechatpay-Timestamp']}\n{headers['Wechatpay-Nonce']}\n".encode() + body + b"\n"
        return rsa_sign(text, self.key)

    @staticmethod
    def is_ack(answer: Any) -> bool:
        return (answer.status_code, answer.content) == (204, b"")


def configuration() -> dict[str, dict[str, Any]]:
    """The shop's side: what it verifies with, and who it is."""
    return {
        "stripe": {"secrets": [Stripe.secret], "livemode": True},
        "alipay": {
            "public_keys": [public_pem("alipay")],
            "app_id": "2021000000000001",
            "seller_id": "2088000000000009",
        },
        "wechat": {
            "platform_keys": {WeChat.serial: public_pem("wechat")},
            "api_keys": [WeChat.api_key],
            "mchid": "1900000001",
            "appid": "wx0000000000000001",
        },
    }


def environment() -> dict[str, str]:
    """The same for a server of its own."""
    known = configuration()
    (serial, platform_key), *_ = known["wechat"]["platform_keys"].items()
    return {
        "STRIPE_WEBHOOK_SECRETS": ",".join(known["stripe"]["secrets"]),
        "STRIPE_LIVEMODE": "true",
        "ALIPAY_PUBLIC_KEYS": ",".join(known["alipay"]["public_keys"]),
        "ALIPAY_APP_ID": known["alipay"]["app_id"],
        "ALIPAY_SELLER_ID": known["alipay"]["seller_id"],
        "WECHAT_PLATFORM_KEYS": f"{serial}={platform_key}",
        "WECHAT_API_KEYS": ",".join(known["wechat"]["api_keys"]),
        "WECHAT_MCHID": known["wechat"]["mchid"],
        "WECHAT_APPID": known["wechat"]["appid"],
    }
