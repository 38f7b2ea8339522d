"""Every content of a request: the view reads it as without us, and it counts in the fingerprint."""

import gc
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.http import HttpRequest, RawPostDataException
from django.test import RequestFactory

from idempotency import bodies
from tests.lab import effects
from tests.lab.callers import Caller
from tests.lab.uploads import multipart

pytestmark = pytest.mark.django_db

FILE = b"order_no,amount\n1,39.80\n"
FORM = "application/x-www-form-urlencoded"
CONTENTS = {
    "json": (b'{"sku": "TEA", "n": 1}', "application/json"),
    "json in chinese": ('{"名": "茶"}'.encode(), "application/json; charset=utf-8"),
    "malformed json": (b'{"sku": ', "application/json"),
    "deep json": (b"[" * 100_000, "application/json"),
    "empty": (b"", "application/json"),
    "form": (b"sku=TEA&n=1&n=2", FORM),
    "empty form": (b"", FORM),
    "multipart": multipart(("sku", b"TEA"), ("file", FILE, "orders.csv"), ("file", b"2", "more.csv")),
    "broken multipart": (b"--b0\r\nnonsense", "multipart/form-data; boundary=b0"),
    "multipart without boundary": (b"--b0", "multipart/form-data"),
    "file": (FILE, "text/csv"),
    "no type": (b"{}", ""),
}
DISPOSITION = {"Content-Disposition": 'attachment; filename="orders.csv"'}


class ReadsPOST:
    """A middleware that reads the form first."""

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> Any:
        getattr(request, self.attribute)
        return self.get_response(request)

    attribute = "POST"


class ReadsBody(ReadsPOST):
    attribute = "body"


@pytest.fixture(params=[None, "ReadsPOST", "ReadsBody"])
def middleware(request: Any, settings: Any) -> None:
    """Nobody reads the body before us, or a middleware does."""
    if request.param:
        settings.MIDDLEWARE = [*settings.MIDDLEWARE, f"{__name__}.{request.param}"]


@pytest.mark.usefixtures("middleware")
@pytest.mark.parametrize("name", CONTENTS)
class TestContent:
    """HTTP-03"""

    def test_is_read_by_the_view_as_without_us(self, caller: Caller, name: str) -> None:
        content, content_type = CONTENTS[name]
        bare = caller.post("uploads/bare", content, key=None, content_type=content_type, headers=DISPOSITION)

        first = caller.post("uploads", content, content_type=content_type, headers=DISPOSITION)

        assert (first.status, first.body) == (bare.status, bare.body)

    def test_that_is_the_same_is_replayed(self, caller: Caller, name: str) -> None:
        content, content_type = CONTENTS[name]
        first, again = (
            caller.post("uploads", content, content_type=content_type, headers=DISPOSITION) for _ in range(2)
        )

        assert (again.status, again.body) == (first.status, first.body)
        assert again.is_replay == (first.status == 201)


@pytest.mark.parametrize("path", ["uploads", "views/uploads", "read-first"])
class TestMultipart:
    """KEY-17"""

    def test_is_the_same_with_another_boundary_and_order(self, caller: Caller, path: str) -> None:
        parts = ("sku", b"TEA"), ("n", b"1"), ("file", FILE, "orders.csv")
        content, content_type = multipart(*parts)
        first = caller.post(path, content, content_type=content_type)

        content, content_type = multipart(*reversed(parts), boundary="another")
        again = caller.post(path, content, content_type=content_type)

        assert first.document["files"]["file"] in ([FILE.decode()], FILE.decode())
        assert (again.status, again.body, again.is_replay) == (201, first.body, True)
        assert effects.done() == ["uploaded"]

    @pytest.mark.parametrize(
        "parts",
        [
            [("sku", b"TEA"), ("file", FILE + b"\n", "orders.csv")],
            [("sku", b"CUP"), ("file", FILE, "orders.csv")],
            [("file", FILE, "orders.csv")],
            [("sku", b"TEA"), ("other", FILE, "orders.csv")],
            [("sku", b"TEA"), ("file", FILE)],
        ],
    )
    def test_is_another_with_other_content(self, caller: Caller, path: str, parts: Any) -> None:
        content, content_type = multipart(("sku", b"TEA"), ("file", FILE, "orders.csv"))
        caller.post(path, content, content_type=content_type)

        content, content_type = multipart(*parts)
        refused = caller.post(path, content, content_type=content_type)

        assert (refused.status, refused.document["code"]) == (422, "idempotency_key_reused")
        assert effects.done() == ["uploaded"]


@pytest.mark.parametrize("path", ["uploads", "read-first"])
class TestIgnoredFields:
    def test_of_json(self, caller: Caller, path: str) -> None:
        answers = [
            caller.post(path, {"sku": "TEA", "sent_at": at, "client": {"sent_at": at}, "n": 0.1})
            for at in (1, 2)
        ]

        assert [(each.status, each.is_replay) for each in answers] == [(201, False), (201, True)]

    def test_of_a_form(self, caller: Caller, path: str) -> None:
        answers = [caller.post(path, f"sku=TEA&sent_at={at}".encode(), content_type=FORM) for at in (1, 2)]

        assert [(each.status, each.is_replay) for each in answers] == [(201, False), (201, True)]

    def test_of_the_query_string(self, caller: Caller, path: str) -> None:
        answers = [caller.post(f"{path}?sent_at={at}") for at in (1, 2)]

        assert [(each.status, each.is_replay) for each in answers] == [(201, False), (201, True)]

    def test_are_those_that_are_named(self, caller: Caller, path: str) -> None:
        answers = [caller.post(path, {"sku": sku}) for sku in ("TEA", "CUP")]

        assert [each.status for each in answers] == [201, 422]


class TestPermissionThatReadsTheData:
    @pytest.mark.parametrize("name", CONTENTS)
    def test_changes_nothing(self, caller: Caller, name: str) -> None:
        content, content_type = CONTENTS[name]
        bare = caller.post("uploads/bare", content, key=None, content_type=content_type, headers=DISPOSITION)

        first = caller.post("read-first", content, content_type=content_type, headers=DISPOSITION)
        again = caller.post("read-first", content, content_type=content_type, headers=DISPOSITION)

        assert (first.status, first.body) == (bare.status, bare.body)
        assert (again.status, again.body) == (bare.status, bare.body)
        assert again.is_replay == (bare.status == 201)


class TestLimits:
    def test_of_django_are_the_views_own(self, caller: Caller, settings: Any) -> None:
        """SEC-02: over DATA_UPLOAD_MAX_MEMORY_SIZE the bytes count, and who reads them refuses them."""
        settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 10
        content = b'{"sku": "TEA-100"}'
        bare = caller.post("uploads/bare", content, key=None)

        first = caller.post("uploads", content)

        assert (first.status, first.body) == (bare.status, bare.body)
        assert caller.post("streams", content).document["size"] == len(content)
        assert caller.post("streams", content).is_replay
        assert caller.post("streams", content.replace(b" ", b"")).status == 422

    def test_that_are_off_are_off(self, caller: Caller, settings: Any) -> None:
        settings.DATA_UPLOAD_MAX_MEMORY_SIZE = None
        caller.post("uploads", b'{"a": 1}')

        assert caller.post("uploads", b'{"a":1.0}').is_replay


class TestPrivateNames:
    """What the library uses of HttpRequest beyond its documentation."""

    def test_of_a_request_that_nobody_has_read(self, rf: RequestFactory) -> None:
        request = rf.post("/", b"content", content_type="text/plain")

        assert request._read_started is False
        assert not hasattr(request, "_body")
        assert request._stream.read(3) == b"con"
        assert request._stream.seekable() is False

    def test_of_a_request_whose_stream_is_replaced(self, rf: RequestFactory) -> None:
        request = rf.post("/", b"content", content_type="text/plain")

        bodies.spool(request)

        assert request._read_started is False
        assert request.read(3) == b"con"
        assert request._read_started is True

    def test_of_a_request_whose_body_was_read(self, rf: RequestFactory) -> None:
        request = rf.post("/", b"content", content_type="text/plain")

        assert request.body == request._body == request._stream.read()

    def test_of_uploaded_files(self, rf: RequestFactory) -> None:
        content, content_type = multipart(("file", FILE, "orders.csv"))
        request = rf.post("/", content, content_type=content_type)

        request.FILES["file"].read()
        bodies.rewind(request)

        assert dict(request._files) == {"file": [request.FILES["file"]]}
        assert request.FILES["file"].read() == FILE


class TestSpool:
    def test_gives_the_body_to_us_and_to_the_view(self, rf: RequestFactory) -> None:
        request = rf.post("/", b"content", content_type="text/plain")

        assert bodies.spool(request).read() == b"content"
        assert bodies.spool(request).read() == b"content"
        bodies.fingerprint(request)
        assert request.body == b"content"
        assert bodies.spool(request).read() == b"content"

    def test_refuses_a_body_that_is_gone(self, rf: RequestFactory) -> None:
        request = rf.post("/", b"content", content_type="text/plain")
        request.read()

        with pytest.raises(RawPostDataException):
            bodies.spool(request)

    def test_leaves_memory_for_a_file_when_it_is_large(self, rf: RequestFactory) -> None:
        size = django_settings.FILE_UPLOAD_MAX_MEMORY_SIZE
        small, large = (rf.post("/", b"x" * n, content_type="text/plain") for n in (size, size + 1))

        assert [bodies.spool(each)._rolled for each in (small, large)] == [False, True]

    def test_closes_its_file_with_the_request(self, rf: RequestFactory, settings: Any) -> None:
        """Else Python warns of it, and warnings are errors here."""
        settings.FILE_UPLOAD_MAX_MEMORY_SIZE = 1
        request = rf.post("/", b"content", content_type="text/plain")
        file = bodies.spool(request)._file

        del request
        gc.collect()

        assert file.closed
