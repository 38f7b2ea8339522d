"""The adapters of real providers, against local servers that answer as the providers document."""

import base64
from datetime import UTC, datetime
from urllib.parse import parse_qsl

import pytest

from notifications.providers.acs3 import Signature
from notifications.providers.aliyun import Aliyun
from notifications.providers.base import Busy, Misconfigured, NoAnswer, Rejected, Unreachable
from notifications.providers.mail import Mail
from notifications.providers.twilio import Twilio
from tests.notifications.stubs import http_stub, smtp_stub
from tests.servers.private import free_port

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
TEXT = {
    "key": "K1",
    "recipient": "+8613800000001",
    "template": "order_paid",
    "params": {"biz_id": "订单+ /1"},
}


@pytest.fixture
def stub():
    with http_stub() as stub:
        yield stub


class TestAliyun:
    @pytest.fixture
    def aliyun(self, stub, settings):
        account = {"access_key_id": "AKID", "access_key_secret": "SECRET", "sign_name": "小店"}
        settings.ALIYUN_SMS = {**account, "endpoint": stub.url}
        return Aliyun()

    def test_sends_what_is_documented(self, aliyun, stub):
        stub.answers = [(200, {"Code": "OK", "BizId": "9006^0", "RequestId": "R"})]
        assert aliyun.send(**TEXT) == "9006^0"
        (asked,) = stub.asked
        assert (asked.method, asked.path, asked.headers["x-acs-action"]) == ("POST", "/", "SendSms")
        assert asked.query == {
            "PhoneNumbers": "13800000001",
            "SignName": "小店",
            "TemplateCode": "order_paid",
            "TemplateParam": '{"biz_id": "订单+ /1"}',
            "OutId": "K1",
        }

    def test_signs_what_it_sends(self, aliyun, stub):
        stub.answers = [(200, {"Code": "OK", "BizId": "1"})]
        aliyun.send(**TEXT)
        (asked,) = stub.asked
        names = asked.headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
        assert {"host", "x-acs-action", "x-acs-date", "x-acs-signature-nonce"} < set(names)
        signature = Signature(key_id="AKID", secret="SECRET", version="2017-05-25")
        signed = {name: asked.headers[name] for name in names}
        assert signature.authorization(asked.query, signed) == asked.headers["authorization"]

    def test_signs_as_the_official_client_does(self):
        """A request of alibabacloud_dysmsapi20170525 4.6.0, recorded."""
        headers = {
            "accept": "application/json",
            "host": "127.0.0.1:41461",
            "user-agent": "AlibabaCloud (Linux; x86_64) Python/3.11.7 Core/0.4.3 TeaDSL/2",
            "x-acs-action": "SendSms",
            "x-acs-content-sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "x-acs-credentials-provider": "static_ak",
            "x-acs-date": "2026-11-30T15:22:32Z",
            "x-acs-signature-nonce": "24b607cfe94ad86410c2b5d9f146f4a8",
            "x-acs-version": "2017-05-25",
        }
        query = {
            "OutId": "K",
            "PhoneNumbers": "13800000001",
            "SignName": "小店 *~",
            "TemplateCode": "T_1",
            "TemplateParam": '{"biz_id": "订单+ /1"}',
        }
        signature = Signature(key_id="AKID", secret="SECRET", version="2017-05-25")
        assert signature.authorization(query, headers).rpartition("Signature=")[2] == (
            "361a20b9fe59b0cdf3d468bfa4e3df4549f854c157cbd938820ee632b94509bd"
        )

    @pytest.mark.parametrize(
        ("answer", "error"),
        [
            ((200, {"Code": "isv.MOBILE_NUMBER_ILLEGAL"}), Rejected),
            ((200, {"Code": "isv.SMS_TEMPLATE_ILLEGAL"}), Rejected),
            ((200, {"Code": "isv.BUSINESS_LIMIT_CONTROL"}), Busy),
            ((400, {"Code": "Throttling.User"}), Busy),
            ((200, {"Code": "isp.SYSTEM_ERROR"}), NoAnswer),
            ((503, {"Code": "ServiceUnavailable"}), NoAnswer),
            ((200, b"<html>"), NoAnswer),
            (None, NoAnswer),
            ((404, {"Code": "SignatureDoesNotMatch"}), Misconfigured),
        ],
    )
    def test_tells_no_from_not_now_and_perhaps(self, aliyun, stub, answer, error):
        stub.answers = [answer]
        with pytest.raises(error):
            aliyun.send(**TEXT)

    def test_finds_by_the_key_through_all_pages(self, aliyun, stub):
        def page(*keys):
            return 200, {
                "Code": "OK",
                "SmsSendDetailDTOs": {"SmsSendDetailDTO": [{"OutId": k} for k in keys]},
            }

        since = NOON.replace(year=2126, hour=17)  # there is no day after it yet
        asked = {"key": "K1", "recipient": "+39 0669812345".replace(" ", ""), "since": since}
        stub.answers = [page(*["other"] * 50), page("K1"), page("other")]
        assert (aliyun.find(**asked), aliyun.find(**asked)) == ("K1", None)
        assert [one.query["CurrentPage"] for one in stub.asked] == ["1", "2", "1"]
        assert stub.asked[0].query["SendDate"] == "21261201"  # its day is China's
        assert stub.asked[0].query["PhoneNumber"] == "00390669812345"

    def test_cannot_close(self, aliyun):
        with pytest.raises(NoAnswer):
            aliyun.close(key="K1")

    def test_that_cannot_be_reached_has_sent_nothing(self, settings, aliyun):
        settings.ALIYUN_SMS = {**settings.ALIYUN_SMS, "endpoint": f"http://127.0.0.1:{free_port()}"}
        with pytest.raises(Unreachable):
            Aliyun().send(**TEXT)


class TestTwilio:
    @pytest.fixture
    def twilio(self, stub, settings):
        account = {"account_sid": "AC1", "auth_token": "token", "from_number": "+15005550006"}
        settings.TWILIO = {**account, "endpoint": stub.url}
        return Twilio()

    def test_sends_what_is_documented(self, twilio, stub):
        stub.answers = [(201, {"sid": "SM1", "status": "queued"})]
        assert twilio.send(**TEXT) == "SM1"
        (asked,) = stub.asked
        assert (asked.method, asked.path) == ("POST", "/2010-04-01/Accounts/AC1/Messages.json")
        assert asked.headers["authorization"] == f"Basic {base64.b64encode(b'AC1:token').decode()}"
        form = dict(parse_qsl(asked.body.decode()))
        assert (form["To"], form["From"]) == ("+8613800000001", "+15005550006")
        assert "订单+ /1" in form["Body"]

    @pytest.mark.parametrize(
        ("answer", "error"),
        [
            ((400, {"code": 21211, "message": "The 'To' number +86… is not valid"}), Rejected),
            ((429, {"code": 20429}), Busy),
            ((503, {"code": 20503}), Busy),
            ((500, {}), NoAnswer),
            ((201, b"{"), NoAnswer),
            (None, NoAnswer),
            ((401, {"code": 20003}), Misconfigured),
        ],
    )
    def test_tells_no_from_not_now_and_perhaps(self, twilio, stub, answer, error):
        stub.answers = [answer]
        with pytest.raises(error) as raised:
            twilio.send(**TEXT)
        assert "+86" not in str(raised.value)

    @pytest.mark.parametrize("members", [{"template": "unheard"}, {"params": {}}])
    def test_rejects_a_template_without_words(self, twilio, stub, members):
        with pytest.raises(Rejected):
            twilio.send(**{**TEXT, **members})
        assert stub.asked == []

    def test_cannot_be_asked(self, twilio):
        for call in (lambda: twilio.find(key="K1", recipient="", since=NOON), lambda: twilio.close(key="K1")):
            with pytest.raises(NoAnswer):
                call()


class TestMail:
    LETTER = {**TEXT, "recipient": "alice@example.com"}

    @pytest.fixture
    def smtp(self, settings):
        settings.DEFAULT_FROM_EMAIL = "The shop <shop@shop.example>"
        with smtp_stub() as smtp:
            self.connect(settings, smtp.port)
            yield smtp

    def connect(self, settings, port):
        options = {"host": "127.0.0.1", "port": port, "timeout": 2}
        backend = "django.core.mail.backends.smtp.EmailBackend"
        settings.MAILERS = {"default": {"BACKEND": backend, "OPTIONS": options}}

    def test_has_the_message_id_of_its_key(self, smtp):
        assert Mail().send(**self.LETTER) == "<K1@shop.example>"
        (taken,) = smtp.mails
        assert b"Message-ID: <K1@shop.example>" in taken
        assert b"To: alice@example.com" in taken

    @pytest.mark.parametrize(
        ("verb", "answer", "error", "taken"),
        [
            ("HELLO", None, Unreachable, 0),
            ("HELLO", "421 closing", Unreachable, 0),
            ("RCPT", "550 <alice@example.com>: nobody", Rejected, 0),
            ("RCPT", "450 <alice@example.com>: later", Busy, 0),
            ("MAIL", "552 full", Rejected, 0),
            ("DATA", "451 later", Busy, 0),
            ("END", "554 spam", Rejected, 1),
            ("END", "452 full", Busy, 1),
            ("END", None, NoAnswer, 1),
        ],
    )
    def test_tells_no_from_not_now_and_perhaps(self, smtp, verb, answer, error, taken):
        smtp.says = {verb: answer}
        with pytest.raises(error) as raised:
            Mail().send(**self.LETTER)
        assert "alice" not in str(raised.value)
        assert len(smtp.mails) == taken

    def test_that_cannot_be_handed_over_was_not_sent(self, settings):
        self.connect(settings, free_port())
        with pytest.raises(Unreachable):
            Mail().send(**self.LETTER)

    def test_needs_words_and_cannot_be_asked(self, smtp):
        for members in ({"template": "unheard"}, {"params": {}}):
            with pytest.raises(Rejected):
                Mail().send(**{**self.LETTER, **members})
        with pytest.raises(NoAnswer):
            Mail().find(key="K1", recipient="", since=NOON)
        with pytest.raises(NoAnswer):
            Mail().close(key="K1")
        assert smtp.mails == []
