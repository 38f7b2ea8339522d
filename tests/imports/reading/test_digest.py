import hashlib
import io

import pytest

from imports.reading.digest import Digest, save
from imports.reading.limits import Limits
from imports.reading.refusals import FileRefused


def test_is_that_of_all_bytes_that_were_written():
    file = io.BytesIO()

    digest = save([b"order_no\n", b"", b"SO-1\n"], to=file)

    content = b"order_no\nSO-1\n"
    assert file.getvalue() == content
    assert digest == Digest(
        md5=hashlib.md5(content).hexdigest(),  # noqa: S324
        sha256=hashlib.sha256(content).hexdigest(),
        size=14,
    )


def test_writing_stops_where_the_file_is_too_large():
    file = io.BytesIO()

    with pytest.raises(FileRefused) as refusal:
        save(iter([b"x" * 10, b"x", b"never asked for"]), to=file, limits=Limits(max_bytes=10))

    assert refusal.value.code == "too_large"
    assert len(file.getvalue()) == 10
