"""Telephone numbers: one spelling inside, and never a whole one in a log."""

import re
import unicodedata
from typing import Final

import phonenumbers
from django.conf import settings

from .exceptions import InvalidPhoneNumber

MAX_LENGTH: Final = 32
"""Characters of what is typed; E.164 has at most 15 digits."""

_TYPED: Final = re.compile(r"\+?[0-9(][0-9 ()./-]*")


def normalise(typed: str) -> str:
    """Return the number in E.164; one without a country is of ``NOTIFICATIONS_REGION``.

    ``+86 138-0000-0001``, ``13800000001`` and ``0086 13800000001`` are one. A zero that belongs to the
    number, as in Italy, stays.

    :raises InvalidPhoneNumber: when there is no such number.
    """
    text = unicodedata.normalize("NFKC", typed).strip(" ")
    if len(text) > MAX_LENGTH or not _TYPED.fullmatch(text):
        raise InvalidPhoneNumber
    try:
        number = phonenumbers.parse(text, settings.NOTIFICATIONS_REGION)
    except phonenumbers.NumberParseException as error:
        raise InvalidPhoneNumber from error
    if not phonenumbers.is_valid_number(number):
        raise InvalidPhoneNumber
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def masked(recipient: str) -> str:
    """Return a number or address as lists and logs may show it: ``+86138****0001``, ``a…@example.com``."""
    if "@" in recipient:
        name, _, domain = recipient.rpartition("@")
        return f"{name[:1]}…@{domain}"
    return f"{recipient[:-8]}****{recipient[-4:]}" if len(recipient) > 8 else "****"
