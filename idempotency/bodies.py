"""Reading a request's body for its fingerprint, so that the view can still read it: streamed, of any size."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final

from django.conf import settings
from django.http import HttpRequest, RawPostDataException

from . import fingerprints

CHUNK: Final = 64 * 1024
FORMS: Final = frozenset({"application/x-www-form-urlencoded", "multipart/form-data"})


class _Spool(SpooledTemporaryFile[bytes]):
    """Closed with the request that holds it; Django has no hook for that."""

    def __del__(self) -> None:
        self.close()


def fingerprint(request: HttpRequest, *, ignored: Iterable[str] = ()) -> bytes:
    """Digest the content: JSON by value, a form by fields and files, anything else by bytes."""
    if request.method == "POST" and request.content_type in FORMS:
        return fingerprints.of_fields(
            dict(request.POST.lists()),
            {name: list(files) for name, files in request.FILES.lists()},
            ignored=ignored,
        )
    file = spool(request)
    try:
        return _of_file(file, request, ignored)
    finally:
        file.seek(0)


def spool(request: HttpRequest) -> IO[bytes]:
    """Return the body as a file that both we and the view read from its start.

    Uses ``HttpRequest._stream`` and ``_read_started``, which are private: a test pins them on each
    supported Django. ``request.body`` will not do: it refuses what is over DATA_UPLOAD_MAX_MEMORY_SIZE,
    which a view that reads the stream accepts.

    :raises RawPostDataException: when somebody has read the stream before and kept nothing.
    """
    if hasattr(request, "_body"):
        request._stream.seek(0)
        return request._stream
    if is_gone(request):
        raise RawPostDataException("The body was read before its fingerprint was taken.")
    source = request._stream
    if not _is_seekable(source):
        request._stream = _Spool(settings.FILE_UPLOAD_MAX_MEMORY_SIZE)  # type: ignore[assignment]
        for chunk in _chunks(source):
            request._stream.write(chunk)
    request._stream.seek(0)
    return request._stream


def is_gone(request: HttpRequest) -> bool:
    """Tell whether somebody has read the stream and kept nothing."""
    return request._read_started and not hasattr(request, "_body")  # type: ignore[attr-defined]


def rewind(request: HttpRequest) -> None:
    """Let the view read the body and the uploaded files anew."""
    if _is_seekable(getattr(request, "_stream", None)):
        request._stream.seek(0)
        request._read_started = False  # type: ignore[attr-defined]
    if files := getattr(request, "_files", None):
        rewind_files(dict(files.lists()))


def rewind_files(files: Mapping[str, list[Any]]) -> None:
    """Let the view read the uploaded files anew."""
    for file in chain.from_iterable(files.values()):
        file.seek(0)


def _of_file(file: IO[bytes], request: HttpRequest, ignored: Iterable[str]) -> bytes:
    if _is_json(request.content_type or "") and _size(file) <= _parsed_size():
        return fingerprints.of_json(file.read(), charset=request.encoding or "utf-8", ignored=ignored)
    return fingerprints.of_bytes(_chunks(file))


def _is_json(content_type: str) -> bool:
    return content_type == "application/json" or content_type.endswith("+json")


def _size(file: IO[bytes]) -> int:
    size = file.seek(0, 2)
    file.seek(0)
    return size


def _parsed_size() -> float:
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    return float("inf") if limit is None else limit


def _chunks(file: Any) -> Iterator[bytes]:
    return iter(partial(file.read, CHUNK), b"")


def _is_seekable(stream: Any) -> bool:
    return hasattr(stream, "seekable") and stream.seekable()
