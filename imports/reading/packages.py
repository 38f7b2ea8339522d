"""The zip file that a workbook is: unpacked piece by piece, and never more than is allowed."""

import errno
import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from django.utils.translation import gettext_lazy as _

from .clocks import Deadline
from .limits import CHUNK, Limits
from .refusals import FileRefused, refusal

LONGEST_DIRECTORY: Final = 256 * 1024
"""Bytes of the list of parts, which is read at once: some thousand parts, a workbook has a dozen."""

SMALL: Final = 8 * 1024 * 1024
"""Bytes that may be unpacked whatever their ratio: empty rows pack very well."""

DAMAGED: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError)
"""What zipfile raises for bytes that are no zip file."""

METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""How parts of workbooks are packed; other methods take any memory."""

ENCRYPTED: Final = 1
"""The bit of a part's flags."""


class _Bounded(io.FileIO):
    """A file of which nobody reads much at once."""

    def read(self, size: int | None = -1, /) -> bytes:
        wanted = size if size is not None and 0 <= size <= LONGEST_DIRECTORY else LONGEST_DIRECTORY + 1
        data = super().read(wanted) or b""
        if len(data) > LONGEST_DIRECTORY:
            raise refusal("zip_bomb")
        return data


class Package:
    """The parts of a workbook."""

    def __init__(self, archive: zipfile.ZipFile, *, packed: int, limits: Limits) -> None:
        self._archive = archive
        self._packed = packed
        self._limits = limits
        self._deadline = Deadline(limits.max_seconds)
        self.names = frozenset(archive.namelist())
        self._check_promises()

    def size(self, name: str) -> int:
        """Return the most bytes that a part can be when it is unpacked."""
        return self._archive.getinfo(name).file_size

    def chunks(self, name: str) -> Iterator[bytes]:
        """Unpack a part, in pieces.

        :raises FileRefused: ``unreadable`` or ``takes_too_long``.
        """
        with damage_refused(), self._archive.open(name) as part:
            while chunk := part.read(CHUNK):
                self._deadline.check()
                yield chunk

    def _check_promises(self) -> None:
        """Refuse what promises too much; no part yields more than it promises, zipfile stops there."""
        parts = self._archive.infolist()
        if len(self.names) != len(parts):  # which of two parts of one name counts, programs do not agree on
            raise refusal("unreadable")
        if any(part.flag_bits & ENCRYPTED for part in parts):
            raise refusal("encrypted")
        if any(part.compress_type not in METHODS for part in parts):
            raise refusal("unreadable")
        unpacked = sum(part.file_size for part in parts)
        is_dense = unpacked > SMALL and unpacked > self._packed * self._limits.max_ratio
        if is_dense or unpacked > self._limits.max_expanded_bytes:
            raise refusal("zip_bomb")


@contextmanager
def opened(path: Path, *, limits: Limits) -> Iterator[Package]:
    """Open the zip file of a workbook.

    :raises FileRefused: ``zip_bomb``, ``encrypted``, ``macros``, ``wrong_type`` or ``unreadable``.
    """
    with _Bounded(path) as file:
        with damage_refused():
            archive = zipfile.ZipFile(file)
        with archive:
            package = Package(archive, packed=path.stat().st_size, limits=limits)
            _check_is_workbook(package)
            yield package


@contextmanager
def damage_refused() -> Iterator[None]:
    """Turn what zipfile says of damaged files into a refusal."""
    try:
        yield
    except FileRefused:
        raise
    except DAMAGED as error:
        raise refusal("unreadable") from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # that is a place before the beginning, others are the disk's
            raise
        raise refusal("unreadable") from error


def _check_is_workbook(package: Package) -> None:
    names = package.names
    if any(name.lower().endswith("vbaproject.bin") for name in names):
        raise refusal("macros")
    if "xl/workbook.bin" in names:
        raise refusal("wrong_type", content=_("a binary workbook (.xlsb)"))
    if "[Content_Types].xml" not in names:
        raise refusal(
            "wrong_type", content=_("an OpenDocument file") if "mimetype" in names else _("a packed file")
        )
    if not any(name.startswith("xl/") for name in names):
        raise refusal("wrong_type", content=_("another office document"))
