"""Uploads of 25 MB."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from tests.lab import effects
from tests.lab.callers import Answer, Caller, read
from tests.lab.uploads import Content

pytestmark = pytest.mark.django_db

SIZE = 25 * 1024 * 1024
SPARE = 3 * 1024 * 1024
"""Bytes that a request may hold at once: FILE_UPLOAD_MAX_MEMORY_SIZE and some chunks."""

HEAD = b'--b0\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'
KINDS: dict[str, tuple[str, str, Callable[[], Content]]] = {
    "multipart": (
        "measures",
        "multipart/form-data; boundary=b0",
        lambda: Content(SIZE, start=HEAD, end=b"\r\n--b0--\r\n"),
    ),
    "raw stream": ("streams", "application/octet-stream", lambda: Content(SIZE)),
    "FileUploadParser": ("measures", "application/octet-stream", lambda: Content(SIZE)),
    "large json": ("streams", "application/json", lambda: Content(SIZE)),
}


def upload(caller: Caller, path: str, content_type: str, content: Content) -> tuple[Answer, int]:
    """Return the answer, and the bytes of memory that it took at most."""
    environ: dict[str, Any] = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": f"/lab/{path}",
        "CONTENT_TYPE": content_type,
        "CONTENT_LENGTH": str(content.length),
        "HTTP_CONTENT_DISPOSITION": 'attachment; filename="a.bin"',
        "HTTP_IDEMPOTENCY_KEY": "key-1",
        "wsgi.input": content,
    }
    tracemalloc.start()
    try:
        answer = read(caller.client.request(**environ))
        return answer, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", KINDS)
class TestUpload:
    def test_is_read_whole_and_takes_no_memory_for_its_fingerprint(self, caller: Caller, kind: str) -> None:
        """SEC-02"""
        path, content_type, content = KINDS[kind]
        bare, peak_without = upload(caller, f"{path}/bare", content_type, content())

        first, peak_with = upload(caller, path, content_type, content())

        assert f'"size":{SIZE}' in first.body.decode()
        assert first.body == bare.body
        assert peak_with - peak_without < SPARE

    def test_is_replayed(self, caller: Caller, kind: str) -> None:
        path, content_type, content = KINDS[kind]
        first, _ = upload(caller, path, content_type, content())

        again, peak = upload(caller, path, content_type, content())

        assert (again.body, again.is_replay) == (first.body, True)
        assert peak < 3 * SPARE
        assert len(effects.done()) == 1
