"""Answers that no provider documents: whoever gives them, it is not known whether a text was sent."""

from datetime import UTC, datetime, timedelta

import pytest

from notifications.providers.aliyun import Aliyun, days
from notifications.providers.base import Busy, Misconfigured, NoAnswer, Rejected
from notifications.providers.sandbox import Sandbox
from notifications.providers.twilio import Twilio
from shop.exchanges import LIMIT
from tests.dripping import dripping
from tests.notifications.stubs import http_stub

NOON = datetime(2026, 10, 30, 12, tzinfo=UTC)
TEXT = {"key": "K1", "recipient": "+8613800000001", "template": "order_paid", "params": {"biz_id": "1"}}
ASKED = {"key": "K1", "recipient": "+8613800000001", "since": NOON}
DEEP = b"[" * 60_000  # within the limit
NO_DOCUMENTS = [b"", b"{", b"<html>", b"[]", b'[["sid", "1"]]', b"7", b"null", b"{}", DEEP, b"\xff\xfe{"]
NO_NUMBERS = [None, "", "x" * 256, "a\x00b", "a\n", "\ud800", 7, True, ["1"], {"a": 1}]
DOUBTFUL = [301, 408, 409, 425, 429, 451, 499, 500, 502, 503, 504]


@pytest.fixture
def stub():
    with http_stub() as stub:
        yield stub


@pytest.fixture
def providers(settings):
    """All that speak HTTP, at this address."""

    def providers(url):
        settings.SANDBOX_URL = url
        account = {"access_key_id": "AKID", "access_key_secret": "SECRET", "sign_name": "shop"}
        settings.ALIYUN_SMS = {**account, "endpoint": url}
        account = {"account_sid": "AC1", "auth_token": "token", "from_number": "+15005550006"}
        settings.TWILIO = {**account, "endpoint": url}
        return {"sandbox": Sandbox(), "aliyun": Aliyun(), "twilio": Twilio()}

    return providers


@pytest.fixture(params=["sandbox", "aliyun", "twilio"])
def provider(request, providers, stub):
    return providers(stub.url)[request.param]


@pytest.fixture
def sandbox(providers, stub):
    return providers(stub.url)["sandbox"]


@pytest.fixture
def aliyun(providers, stub):
    return providers(stub.url)["aliyun"]


def taken(provider, number):
    """What each says when it has taken a text."""
    return {
        Sandbox: (200, {"message": {"message_no": number}}),
        Aliyun: (200, {"Code": "OK", "BizId": number}),
        Twilio: (201, {"sid": number}),
    }[type(provider)]


class TestTaken:
    @pytest.mark.parametrize("number", ["1", "x" * 255, "单号 1"])
    def test_has_a_number(self, provider, stub, number):
        stub.answers = [taken(provider, number)]
        assert provider.send(**TEXT) == number

    @pytest.mark.parametrize("number", NO_NUMBERS)
    def test_without_a_number_is_in_doubt(self, provider, stub, number):
        stub.answers = [taken(provider, number)]
        with pytest.raises(NoAnswer):
            provider.send(**TEXT)

    @pytest.mark.parametrize("body", NO_DOCUMENTS)
    def test_without_a_document_is_in_doubt(self, provider, stub, body):
        stub.answers = [(taken(provider, "1")[0], body)]
        with pytest.raises(NoAnswer):
            provider.send(**TEXT)

    @pytest.mark.parametrize("message", [None, {}, [], "x", 7])
    def test_without_a_message_is_in_doubt(self, sandbox, stub, message):
        stub.answers = [(200, {"message": message})]
        with pytest.raises(NoAnswer):
            sandbox.send(**TEXT)


class TestFound:
    @pytest.mark.parametrize("body", [*NO_DOCUMENTS, {"message": {}}, {"message": {"message_no": "x" * 256}}])
    def test_by_the_sandbox_is_a_message_or_null(self, sandbox, stub, body):
        stub.answers = [(200, body), (200, body), (200, {"message": None})]
        for ask in (lambda: sandbox.find(**ASKED), lambda: sandbox.close(key="K1")):
            with pytest.raises(NoAnswer):
                ask()
        assert sandbox.find(**ASKED) is None

    @pytest.mark.parametrize(
        "body",
        [
            *NO_DOCUMENTS,
            {"Code": "OK"},
            {"Code": "OK", "SmsSendDetailDTOs": None},
            {"Code": "OK", "SmsSendDetailDTOs": {"SmsSendDetailDTO": "x"}},
            {"Code": "OK", "SmsSendDetailDTOs": {"SmsSendDetailDTO": [1]}},
            {"Code": "isv.ACCOUNT_ABNORMAL"},
            {"Code": "isv.INVALID_PARAMETERS"},
            {"Code": "Throttling.User"},
            {"Code": "isp.SYSTEM_ERROR"},
        ],
    )
    def test_by_aliyun_is_a_list_and_a_refused_question_is_no_answer(self, aliyun, stub, body):
        stub.answers = [(200, body)]
        with pytest.raises(NoAnswer):
            aliyun.find(**ASKED)

    def test_by_aliyun_on_the_day_after_as_well(self, aliyun, stub):
        def page(*keys):
            listed = {"SmsSendDetailDTO": [{"OutId": key} for key in keys]}
            return 200, {"Code": "OK", "SmsSendDetailDTOs": listed}

        stub.answers = [page("other"), page("K1")]
        assert aliyun.find(**ASKED) == "K1"
        assert [asked.query["SendDate"] for asked in stub.asked] == ["20261030", "20261031"]


class TestDays:
    @pytest.mark.parametrize(
        ("since", "now", "expected"),
        [
            ("2026-10-30T12:00", "2026-11-10T12:00", [30, 31]),
            ("2026-10-30T12:00", "2026-10-30T12:01", [30]),
            ("2026-10-30T15:59", "2026-10-30T16:01", [30, 31]),  # midnight in China
            ("2026-10-30T16:00", "2026-10-30T16:01", [30, 31]),
            ("2026-10-30T16:01", "2026-10-30T16:02", [31]),
            ("2026-10-30T12:00", "2026-10-28T12:00", [30]),  # a clock that is behind
        ],
    )
    def test_are_chinas_and_never_to_come(self, since, now, expected):
        times = [datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (since, now)]
        assert [day.day for day in days(times[0], now=times[1])] == expected


class TestStatus:
    @pytest.mark.parametrize("status", DOUBTFUL)
    def test_of_a_gateway_leaves_it_in_doubt(self, provider, stub, status):
        stub.answers = [(status, b"<html>"), (status, {})]
        for _ in range(2):
            with pytest.raises(NoAnswer):
                provider.send(**TEXT)

    def test_429_that_says_when_to_come_again_is_a_definite_not_now(self, provider, stub):
        stub.answers = [(429, b"", {"Retry-After": "3"})]
        with pytest.raises(Busy):
            provider.send(**TEXT)

    @pytest.mark.parametrize(
        ("status", "body", "error"),
        [
            (422, {"code": "declined"}, Rejected),
            (422, b"", NoAnswer),
            (
                422,
                {"code": "No text to +8613800000001 is possible, by order of the regulator, today"},
                NoAnswer,
            ),
            (503, {"code": "busy"}, Busy),
            (429, {"code": "busy"}, Busy),
            (400, b"", Misconfigured),
            (403, b"<html>", Misconfigured),
        ],
    )
    def test_is_definite_where_the_sandbox_itself_says_so(self, sandbox, stub, status, body, error):
        stub.answers = [(status, body)]
        with pytest.raises(error) as raised:
            sandbox.send(**TEXT)
        assert type(raised.value) is error

    @pytest.mark.parametrize(
        ("status", "code", "error"),
        [
            (400, "isp.SYSTEM_ERROR", NoAnswer),
            (200, "isp.UNHEARD_OF", NoAnswer),
            (400, "InternalError", NoAnswer),
            (200, "Unheard.Of", NoAnswer),
            (400, "isp.RAM_PERMISSION_DENY", Misconfigured),
            (403, "NoPermission", Misconfigured),
            (400, "Throttling.Unheard", Busy),
        ],
    )
    def test_is_not_all_that_tells_with_aliyun(self, aliyun, stub, status, code, error):
        stub.answers = [(status, {"Code": code})]
        with pytest.raises(error) as raised:
            aliyun.send(**TEXT)
        assert type(raised.value) is error


class TestEndless:
    @pytest.fixture(autouse=True)
    def _patience(self, settings):
        settings.NOTIFICATIONS_CONNECT_TIMEOUT = timedelta(seconds=0.2)
        settings.NOTIFICATIONS_READ_TIMEOUT = timedelta(seconds=0.3)

    @pytest.mark.parametrize("name", ["sandbox", "aliyun", "twilio"])
    @pytest.mark.parametrize(
        ("head", "tail"),
        [
            (b"HTTP/1.1 201 Created\r\nContent-Length: 60\r\n\r\n", b'{"sid": "1"}'.ljust(60)),
            (b"HTTP/1.1 422 Refused\r\n\r\n", b'{"code": "declined"}'.ljust(60)),  # up to its end
            (b"HTTP/1.1 422 Refused\r\nContent-Length: 0\r\nX-Slow: ", b"x" * 60 + b"\r\n\r\n"),
        ],
    )
    def test_drip_is_cut_off(self, providers, name, head, tail):
        with dripping(head, tail) as url, pytest.raises(NoAnswer, match=r"ReadTimeout|RemoteProtocolError"):
            providers(url)[name].send(**TEXT)

    def test_answer_is_not_read_to_its_end(self, provider, stub):
        stub.answers = [(taken(provider, "1")[0], b" " * LIMIT + b"{}")]
        with pytest.raises(NoAnswer, match="DecodingError"):
            provider.send(**TEXT)

    def test_answer_within_the_limit_is_read(self, sandbox, stub):
        stub.answers = [(200, b'{"message": {"message_no": "1"}}'.ljust(LIMIT))]
        assert sandbox.send(**TEXT) == "1"
