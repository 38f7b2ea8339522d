"""Who the shop is at each provider, and the keys of both sides: made anew, kept in a file of the sandbox."""

import json
import secrets
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

APP_ID: Final = "2021000000000001"
SELLER_ID: Final = "2088000000000009"
MCHID: Final = "1900000001"
APPID: Final = "wx0000000000000001"
SERIAL: Final = "SANDBOX0001"


def new_secrets() -> dict[str, Any]:
    """Make keys for both sides."""
    alipay, wechat = _key_pair(), _key_pair()
    return {
        "alipay": alipay,
        "wechat": {**wechat, "api_key": secrets.token_hex(16)},
        "stripe": {"secret": f"whsec_{secrets.token_hex(16)}"},
    }


def write(path: Path) -> dict[str, Any]:
    """Write fresh keys into a file that only its owner reads; return them."""
    made = new_secrets()
    path.touch(mode=0o600)
    path.write_text(json.dumps(made))
    return made


def environment(made: dict[str, Any]) -> dict[str, str]:
    """Return the shop's side as the environment variables of its settings."""
    return {
        "ALIPAY_PUBLIC_KEYS": made["alipay"]["public"],
        "ALIPAY_APP_ID": APP_ID,
        "ALIPAY_SELLER_ID": SELLER_ID,
        "WECHAT_PLATFORM_KEYS": f"{SERIAL}={made['wechat']['public']}",
        "WECHAT_API_KEYS": made["wechat"]["api_key"],
        "WECHAT_MCHID": MCHID,
        "WECHAT_APPID": APPID,
        "STRIPE_WEBHOOK_SECRETS": made["stripe"]["secret"],
        "STRIPE_LIVEMODE": "false",
    }


def _key_pair() -> dict[str, str]:
    key = generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    return {"private": private, "public": "".join(public.splitlines()[1:-1])}
