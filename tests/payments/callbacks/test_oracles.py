"""The providers' own SDKs agree with the shop on what is signed, and accept what the sandbox signs."""

import json
from datetime import UTC, datetime
from urllib.parse import parse_qsl

import pytest
import stripe as stripe_sdk
import wechatpayv3
from alipay.aop.api.util import SignatureUtils
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from wechatpayv3.utils import rsa_sign

from idempotency.webhooks import InvalidSignature
from payments.callbacks import alipay, stripe, wechat
from sandbox import notices, secrets

from . import senders

SECRETS = secrets.new_secrets()
CHARGE = {
    "payment_no": "P-1",
    "order_no": "SO-2024-0001",
    "amount_minor": 3980,
    "currency": "CNY",
    "paid_at": "2024-11-04T06:00:05+00:00",
    "refunds": [],
}


def private_text(name, form):
    pem = senders.key_pair(name).private_bytes(Encoding.PEM, form, NoEncryption()).decode()
    return "".join(pem.splitlines()[1:-1])


def is_accepted(verify):
    try:
        verify()
    except InvalidSignature:
        return False
    return True


def sdk_of_wechat(*, public, serial, api_key):
    return wechatpayv3.WeChatPay(
        wechatpay_type=wechatpayv3.WeChatPayType.NATIVE,
        mchid="1900000001",
        private_key=private_text("merchant", PrivateFormat.PKCS8),
        cert_serial_no="00",
        apiv3_key=api_key,
        appid="wx0000000000000001",
        public_key=public.strip(),
        public_key_id=serial,
    )


class TestStripe:
    def sdk_accepts(self, body, header, secret):
        try:
            stripe_sdk.WebhookSignature.verify_header(body, header, secret, tolerance=300)
        except stripe_sdk.SignatureVerificationError:
            return False
        return True

    def test_accepts_what_the_sdk_signs(self):
        body = senders.file("stripe", "01")
        header = stripe_sdk.WebhookSignature.generate_signature_header(body.decode(), "whsec_x")
        assert is_accepted(
            lambda: stripe.verify(body=body, header=header, secrets=["whsec_x"], now=datetime.now(UTC))
        )

    def test_sdk_accepts_what_the_sandbox_signs(self):
        keys = SECRETS["stripe"]
        body, headers = notices.stripe("paid", CHARGE, keys)
        event = stripe_sdk.Webhook.construct_event(body, headers["Stripe-Signature"], keys["secret"])
        assert event.type == "payment_intent.succeeded"

    @pytest.mark.parametrize("secret", ["whsec_x", "whsec_y", "", " "])
    @pytest.mark.parametrize(
        "change",
        [
            lambda header: header,
            lambda header: header.replace("v1=", "v0="),
            lambda header: header + ",v1=" + "0" * 64,
            lambda header: "v1=" + "0" * 64 + "," + header,
            lambda header: header.split(",")[1],
            lambda header: header.upper(),
            lambda header: header.replace("t=1", "t=2"),
            lambda header: "",
        ],
    )
    def test_agrees_with_the_sdk(self, secret, change):
        body = senders.file("stripe", "01")
        header = change(senders.Stripe(secret="whsec_x").sign(body))
        ours = is_accepted(
            lambda: stripe.verify(body=body, header=header, secrets=[secret], now=datetime.now(UTC))
        )
        assert ours == self.sdk_accepts(body, header, secret)


class TestAlipay:
    def sdk_accepts(self, fields, key=None):
        signed = {
            name: value for name, value in fields.items() if name not in ("sign", "sign_type") and value
        }
        message = SignatureUtils.get_sign_content(signed).encode()
        key = key or "".join(senders.public_pem("alipay").splitlines()[1:-1])
        try:
            return SignatureUtils.verify_with_rsa(key, message, fields["sign"])
        except Exception:  # noqa: BLE001  the SDK has no error of its own for it
            return False

    @pytest.mark.parametrize("name", [f"{number:02}" for number in range(1, 15)])
    def test_agrees_with_the_sdk(self, name):
        body = senders.Alipay().body(name)
        fields = dict(parse_qsl(body.decode(), keep_blank_values=True))
        keys = [senders.public_pem("alipay")]
        ours = is_accepted(lambda: alipay.verify(fields=alipay.parse(body), keys=keys))
        assert ours == self.sdk_accepts({"sign": "", **fields}) == (name not in ("12", "13"))

    def test_accepts_what_the_sdk_signs(self):
        fields = {"out_trade_no": "SO-1", "subject": "双十一 A&B=茶 +10%", "empty": ""}
        content = SignatureUtils.get_sign_content({name: value for name, value in fields.items() if value})
        private = private_text("alipay", PrivateFormat.TraditionalOpenSSL)
        signature = SignatureUtils.sign_with_rsa2(private, content, "utf-8")
        sent = {name.encode(): value.encode() for name, value in fields.items()}
        sent |= {b"sign": signature.encode(), b"sign_type": b"RSA2"}
        alipay.verify(fields=sent, keys=[senders.public_pem("alipay")])

    def test_sdk_accepts_what_the_sandbox_signs(self):
        body, _headers = notices.alipay("paid", CHARGE, SECRETS["alipay"])
        fields = dict(parse_qsl(body.decode(), keep_blank_values=True))
        assert self.sdk_accepts(fields, key=SECRETS["alipay"]["public"])


class TestWeChat:
    @pytest.fixture
    def sdk(self):
        known = senders.WeChat
        return sdk_of_wechat(public=senders.public_pem("wechat"), serial=known.serial, api_key=known.api_key)

    def ours(self, headers, body):
        keys = {senders.WeChat.serial: senders.public_pem("wechat")}
        return is_accepted(
            lambda: wechat.verify(headers=headers, body=body, keys=keys, now=datetime.now(UTC))
        )

    @pytest.mark.parametrize("name", ["01", "02", "03", "04", "05", "06", "07", "09", "11", "12"])
    def test_agrees_with_the_sdk(self, sdk, name):
        body, headers = senders.WeChat().message(name)
        opened = sdk.callback(headers, body.decode())

        assert self.ours(headers, body) == (opened is not None) == (name not in ("09", "11"))
        if opened:
            resource = json.loads(body)["resource"]
            assert wechat.decrypt(resource=resource, keys=[senders.WeChat.api_key]) == opened["resource"]

    def test_accepts_what_the_sdk_signs(self):
        body, headers = senders.WeChat().message("01")
        stamp, nonce = headers["Wechatpay-Timestamp"], headers["Wechatpay-Nonce"]
        text = f"{stamp}\n{nonce}\n{body.decode()}\n"
        headers["Wechatpay-Signature"] = rsa_sign(senders.key_pair("wechat"), text)
        assert self.ours(headers, body)

    def test_sdk_accepts_what_the_sandbox_signs(self):
        keys = SECRETS["wechat"]
        sdk = sdk_of_wechat(public=keys["public"], serial=secrets.SERIAL, api_key=keys["api_key"])
        body, headers = notices.wechat("paid", CHARGE, keys)
        assert sdk.callback(headers, body.decode())["resource"]["transaction_id"] == CHARGE["payment_no"]
