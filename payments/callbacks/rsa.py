"""Checking RSA signatures (SHA-256, PKCS#1 v1.5), as Alipay and WeChat Pay make them."""

from base64 import b64decode
from collections.abc import Iterable
from functools import lru_cache

from cryptography.exceptions import InvalidSignature as WrongSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key, load_pem_public_key
from cryptography.x509 import load_pem_x509_certificate

from idempotency.webhooks import InvalidSignature


def verify(*, keys: Iterable[str], signature: str, message: bytes) -> None:
    """Check that one of the keys' owners has signed the message.

    ``keys`` are PEM public keys or certificates, or what stands between the lines of a PEM public key.

    :raises InvalidSignature: when none has, or there is no key.
    """
    try:
        signed = b64decode(signature, validate=True)
    except ValueError as error:
        raise InvalidSignature("the signature is not base64") from error
    if not any(_is_signed(_public_key(key), signed, message) for key in keys):
        raise InvalidSignature("no known key has signed this")


def _is_signed(key: RSAPublicKey, signature: bytes, message: bytes) -> bool:
    try:
        key.verify(signature, message, PKCS1v15(), SHA256())
    except WrongSignature:
        return False
    return True


@lru_cache(maxsize=32)
def _public_key(text: str) -> RSAPublicKey:
    text = text.strip()
    if text.startswith("-----BEGIN CERTIFICATE"):
        key = load_pem_x509_certificate(text.encode()).public_key()
    elif text.startswith("-----BEGIN"):
        key = load_pem_public_key(text.encode())
    else:
        key = load_der_public_key(b64decode(text))
    if not isinstance(key, RSAPublicKey):
        raise TypeError("The providers sign with RSA keys.")
    return key
