"""What a file is known by, worked out while it is written."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import BinaryIO

from .limits import Limits
from .refusals import refusal


@dataclass(frozen=True, kw_only=True)
class Digest:
    """Of the bytes alone: name and type of the file do not count."""

    md5: str
    """32 hexadecimal digits."""
    sha256: str
    """64 hexadecimal digits."""
    size: int
    """In bytes."""


def save(chunks: Iterable[bytes], *, to: BinaryIO, limits: Limits | None = None) -> Digest:
    """Write an upload's ``chunks()`` to a file, and return what it is known by.

    No more than one chunk is in memory.

    :raises FileRefused: ``too_large``, as soon as it is; what was written until then is in the file.
    """
    max_bytes = (limits or Limits.from_settings()).max_bytes
    md5, sha256, size = hashlib.md5(usedforsecurity=False), hashlib.sha256(), 0
    for chunk in chunks:
        size += len(chunk)
        if size > max_bytes:
            raise refusal("too_large", limit=max_bytes)
        md5.update(chunk)
        sha256.update(chunk)
        to.write(chunk)
    return Digest(md5=md5.hexdigest(), sha256=sha256.hexdigest(), size=size)
