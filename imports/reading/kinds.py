"""What kind of file it is: the content says so, and the name must agree."""

from enum import Enum
from pathlib import Path
from typing import Final

from django.utils.translation import gettext_lazy as _

from .limits import CHUNK, Limits
from .packages import opened
from .refusals import refusal, renamed


class Kind(Enum):
    """What can be read, and the endings that its names may have."""

    CSV = (".csv", ".tsv", ".txt")
    XLSX = (".xlsx",)


COMPOUND: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""How old Office files begin, and new ones that a password protects."""

ENCRYPTED: Final = "EncryptedPackage".encode("utf-16-le")

FOREIGN: Final = (
    (b"%PDF", _("a PDF document")),
    (b"{\\rtf", _("a text document")),
    (b"\x1f\x8b", _("a packed file")),
    (b"7z\xbc\xaf", _("a packed file")),
    (b"Rar!", _("a packed file")),
    (b"\x89PNG", _("a picture")),
    (b"\xff\xd8\xff", _("a picture")),
    (b"GIF8", _("a picture")),
)

CONTENTS: Final = {Kind.CSV: _("a text file"), Kind.XLSX: _("a workbook")}


def kind_of(path: Path, *, filename: str, limits: Limits) -> Kind:
    """Return what the file can be read as.

    :raises FileRefused: ``empty_file``, ``too_large``, ``wrong_type``, ``encrypted`` or ``macros``.
    """
    size = path.stat().st_size
    if not size:
        raise refusal("empty_file")
    if size > limits.max_bytes:
        raise refusal("too_large", limit=limits.max_bytes)
    kind = _kind_of_content(path)
    ending = Path(filename).suffix.lower()
    if ending in kind.value:
        return kind
    if kind is Kind.XLSX:
        with opened(path, limits=limits):  # which tells what else is packed like a workbook
            pass
    raise renamed(name=ending or filename[-20:], content=CONTENTS[kind])


def _kind_of_content(path: Path) -> Kind:
    with path.open("rb") as file:
        head = file.read(1024)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return Kind.XLSX
    if head.startswith(COMPOUND):
        raise _compound(path)
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
        raise refusal("wrong_type", content=_("a web page or XML document"))
    for start, content in FOREIGN:
        if head.startswith(start):
            raise refusal("wrong_type", content=content)
    return Kind.CSV


def _compound(path: Path) -> Exception:
    if _holds(path, ENCRYPTED):
        return refusal("encrypted")
    return refusal("wrong_type", content=_("a workbook of the old kind (.xls)"))


def _holds(path: Path, wanted: bytes) -> bool:
    """Whether the bytes are anywhere in the file, also across two chunks."""
    tail = b""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            if wanted in tail + chunk:
                return True
            tail = chunk[-len(wanted) :]
    return False
