"""The form of a key: what a header may hold, and what any key may hold."""

import re
from typing import Final

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from .exceptions import KeyInvalid

MAX_LENGTH: Final = 255
"""Characters, after unquoting: what the Idempotency-Key draft's implementers commonly accept."""

_PRINTABLE: Final = re.compile(r"[\x20-\x7e]+")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\["\\])*)"')
_ESCAPE: Final = re.compile(r'\\(["\\])')


def parse(header: str) -> str:
    """Return the key of an ``Idempotency-Key`` header, sent bare or as a structured-field String.

    ``abc`` and ``"abc"`` are the same key (RFC 8941 §3.3.3, draft-ietf-httpapi-idempotency-key-header).

    :raises KeyInvalid: when it is empty, blank, too long, not printable ASCII, badly quoted, or two keys.
    """
    text = header.strip(" \t")
    if not text:
        raise KeyInvalid(_("The key is empty."))
    if not _PRINTABLE.fullmatch(text):
        raise KeyInvalid(_("The key may hold printable ASCII characters only."))
    return check(_unquote(text))


def check(key: str) -> str:
    """Return a key that any adapter may use.

    :raises KeyInvalid: when it is blank, too long, or holds a control character.
    """
    if not key.strip():
        raise KeyInvalid(_("The key is empty."))
    if len(key) > MAX_LENGTH:
        raise KeyInvalid(format_lazy(_("The key is longer than {limit} characters."), limit=MAX_LENGTH))
    if not key.isprintable():
        raise KeyInvalid(_("The key may hold printable characters only."))
    return key


def join(*parts: object) -> str:
    """Return one key of several parts, as in ``{user}_{cart}_{uuid}``; parts that hold ``_`` are escaped."""
    return "_".join(str(part).replace("%", "%25").replace("_", "%5F") for part in parts)


def _unquote(text: str) -> str:
    if quoted := _QUOTED.fullmatch(text):
        return _ESCAPE.sub(r"\1", quoted[1])
    if text.startswith('"'):
        raise KeyInvalid(_("The key is not a well-formed quoted string."))
    if "," in text:
        # servers join a header that was sent twice by a comma
        raise KeyInvalid(_("There is more than one key: send one, or quote a key that holds a comma."))
    return text
