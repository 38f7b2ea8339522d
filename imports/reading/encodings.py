"""Which characters the bytes of a text file are."""

import codecs
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from django.utils.translation import gettext_lazy as _

from .limits import CHUNK
from .refusals import refusal

MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

SAMPLE: Final = 10_000
"""Characters outside ASCII that are looked at."""

LIKELY: Final = 0.6
"""Of Chinese text that is really GB18030, all but rare names are everyday characters. What is another
encoding, such as Latin-1, Big5 or Shift-JIS, makes mostly rare ones."""


def encoding_of(path: Path) -> str:
    """Return the encoding in which the whole file can be read without a loss.

    A mark at the start decides. Without one it is UTF-8, or else GB18030 if that makes likely Chinese:
    nearly any bytes *can* be read as GB18030, and wrong characters are worse than a refusal.

    :raises FileRefused: ``unknown_encoding``, or ``wrong_type`` for what is no text.
    """
    marked = _marked(path)
    if marked or _is(path, "utf-8"):
        return _readable(path, marked or "utf-8")
    sample = _sample(path)
    if not _is_likely_chinese(sample):
        raise refusal("unknown_encoding")
    return "gb18030"


def _marked(path: Path) -> str | None:
    with path.open("rb") as file:
        head = file.read(4)
    return next((encoding for mark, encoding in MARKS if head.startswith(mark)), None)


def _is(path: Path, encoding: str) -> bool:
    try:
        for _text in decoded(path, encoding):
            pass
    except UnicodeError:
        return False
    return True


def _readable(path: Path, encoding: str) -> str:
    try:
        for text in decoded(path, encoding):
            _check_text(text)
    except UnicodeError:
        raise refusal("unknown_encoding") from None
    return encoding


def _sample(path: Path) -> str:
    sample = ""
    try:
        for text in decoded(path, "gb18030"):
            _check_text(text)
            if len(sample) < SAMPLE and not text.isascii():
                sample += "".join(character for character in text if character > "\x7f")
    except UnicodeError:
        raise refusal("unknown_encoding") from None
    return sample


def _check_text(text: str) -> None:
    if "\0" in text:
        raise refusal("wrong_type", content=_("no text"))


def decoded(path: Path, encoding: str) -> Iterator[str]:
    """Yield the text in pieces.

    :raises UnicodeError: when it is not in this encoding.
    """
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield decoder.decode(chunk)
    yield decoder.decode(b"", final=True)


def _is_likely_chinese(sample: str) -> bool:
    return sum(map(_is_everyday, sample)) >= LIKELY * len(sample)


def _is_everyday(character: str) -> bool:
    """Whether it is one of the 3,755 commonest Chinese characters (GB 2312, level 1) or punctuation."""
    encoded = character.encode("gb18030")
    is_double = len(encoded) == 2 and encoded[1] >= 0xA1
    return is_double and (0xB0 <= encoded[0] <= 0xD7 or 0xA1 <= encoded[0] <= 0xA3)
