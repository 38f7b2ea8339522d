"""A provider that says no, not now, or nothing."""

from datetime import datetime, timedelta

import pytest

from notifications.models import Message
from notifications.providers import provider
from notifications.providers.base import NoAnswer, Rejected
from tests.notifications.texting import FAILED, SENT, UNKNOWN, post, statuses, turn_back, unfinished
from tests.servers.private import free_port
from tests.shopping import shopper

pytestmark = [pytest.mark.django_db, pytest.mark.urls("config.urls")]

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def _shop(texting):
    pass


@pytest.fixture
def alice():
    return shopper("alice")


class TestRejected:
    def test_fails_and_frees_the_window(self, alice, phone, sandbox):
        """SMS-05"""
        sandbox.rule("decline", call="message", phone=phone)
        answer = post(alice, phone)
        assert (answer.status_code, answer.json()["code"]) == (422, "sms_rejected")
        assert (statuses(), unfinished(), sandbox.messages(phone)) == ([FAILED], 0, [])
        again = post(alice, phone)
        assert (again.status_code, again.json()["data"]["isDuplicate"]) == (200, False)
        assert (statuses(), len(sandbox.messages(phone))) == ([FAILED, SENT], 1)

    def test_logs_no_whole_number(self, alice, phone, sandbox, caplog):
        sandbox.rule("decline", call="message", phone=phone)
        post(alice, phone)
        assert "sms" in caplog.text.lower() or "rejected" in caplog.text
        assert phone[3:] not in caplog.text


class TestBusy:
    def test_is_told_and_frees_the_window(self, alice, phone, sandbox):
        """SMS-05"""
        sandbox.rule("busy", call="message", phone=phone)
        answer = post(alice, phone)
        assert (answer.status_code, answer.json()["code"]) == (503, "sms_unavailable")
        assert answer["Retry-After"]
        assert (statuses(), unfinished(), sandbox.messages(phone)) == ([FAILED], 0, [])
        turn_back(50 * SECOND)
        assert post(alice, phone).json()["data"]["isDuplicate"] is False
        turn_back(50 * SECOND)  # the minute counts from the attempt that was sent
        assert post(alice, phone).json()["data"]["isDuplicate"] is True
        assert len(sandbox.messages(phone)) == 1

    def test_so_is_a_provider_that_cannot_be_reached(self, alice, phone, sandbox, settings):
        settings.SANDBOX_URL = f"http://127.0.0.1:{free_port()}"
        provider.cache_clear()
        assert post(alice, phone, kind="notification", biz_id=phone).status_code == 503
        settings.SANDBOX_URL = sandbox.url
        provider.cache_clear()
        assert post(alice, phone, kind="notification", biz_id=phone).status_code == 200
        assert (statuses(), len(sandbox.messages(phone))) == ([FAILED, SENT], 1)

    def test_so_is_a_provider_that_does_not_know_us_but_somebody_is_told(
        self, alice, phone, sandbox, settings, caplog
    ):
        settings.SANDBOX_URL = f"{sandbox.url}/elsewhere"
        provider.cache_clear()
        assert post(alice, phone).status_code == 503
        assert (
            statuses(),
            [record.levelname for record in caplog.records if record.name == "notifications"],
        ) == (
            [FAILED],
            ["ERROR"],
        )


class TestSilentProvider:
    @pytest.mark.parametrize("mode", ["silent_after", "error_after"])
    def test_is_asked_by_the_repeat_which_sends_nothing(self, alice, phone, sandbox, mode):
        """SMS-02"""
        sandbox.rule(mode, call="message", phone=phone)
        answer = post(alice, phone)
        assert (answer.status_code, answer.json()["data"]["sendStatus"]) == (202, "unknown")
        assert answer["Retry-After"]
        assert (statuses(), unfinished()) == ([UNKNOWN], 1)
        attempted_at = Message.objects.get().attempted_at
        repeat = post(alice, phone)
        assert (repeat.status_code, repeat.json()["data"]["isDuplicate"]) == (200, True)
        assert datetime.fromisoformat(repeat.json()["data"]["sentAt"]) == attempted_at
        assert (statuses(), unfinished(), len(sandbox.messages(phone))) == ([SENT], 0, 1)

    @pytest.mark.parametrize("mode", ["silent_before", "error_before"])
    def test_that_knows_nothing_gets_the_same_text_again_under_the_same_key(
        self, alice, phone, sandbox, mode
    ):
        sandbox.rule(mode, call="message", phone=phone)
        assert post(alice, phone).status_code == 202
        key = Message.objects.get().provider_key
        repeat = post(alice, phone)
        assert (repeat.status_code, repeat.json()["data"]["isDuplicate"]) == (200, False)
        assert [text["key"] for text in sandbox.messages(phone)] == [key]
        assert (statuses(), unfinished()) == ([SENT], 0)

    def test_is_not_waited_for_longer_than_the_timeout(self, alice, phone, sandbox):
        sandbox.rule("slow", call="message", phone=phone, seconds=2)
        assert post(alice, phone).status_code == 202
        assert post(alice, phone).status_code == 200
        assert len(sandbox.messages(phone)) == 1

    @pytest.mark.parametrize("mode", ["silent_after", "silent_before"])
    def test_stays_unknown_while_nobody_can_be_asked(self, alice, phone, sandbox, mode):
        sandbox.rule(mode, call="message", phone=phone)
        sandbox.rule("error_before", call="find", provider="sms", times=3)
        assert [post(alice, phone).status_code for _ in range(4)] == [202] * 4
        assert post(alice, phone).status_code == 200
        assert len(sandbox.messages(phone)) == 1

    def test_stays_unknown_and_unsent_with_a_provider_that_takes_no_keys(
        self, alice, phone, sandbox, monkeypatch
    ):
        monkeypatch.setattr(provider("sms"), "is_once_by_key", False)
        sandbox.rule("silent_after", call="message", phone=phone)
        sandbox.rule("error_before", call="close", provider="sms", times=0)
        monkeypatch.setattr(provider("sms"), "find", lambda **asked: None)
        assert [post(alice, phone).status_code for _ in range(3)] == [202] * 3
        assert (statuses(), len(sandbox.messages(phone))) == ([UNKNOWN], 1)

    @pytest.mark.parametrize("refusal", [Rejected("isv.ACCOUNT_ABNORMAL"), NoAnswer()])
    def test_that_refuses_the_question_has_not_refused_the_text(
        self, alice, phone, sandbox, monkeypatch, refusal
    ):
        """Only a provider that knows keys can say of one that nothing was sent under it."""

        def refuse(**asked):
            raise refusal

        monkeypatch.setattr(provider("sms"), "is_once_by_key", False)
        monkeypatch.setattr(provider("sms"), "find", refuse)
        sandbox.rule("silent_after", call="message", phone=phone)
        assert [post(alice, phone).status_code for _ in range(3)] == [202] * 3
        assert (statuses(), unfinished(), len(sandbox.messages(phone))) == ([UNKNOWN], 1, 1)

    def test_is_asked_for_the_day_of_the_attempt(self, alice, phone, sandbox, monkeypatch):
        asked = []
        monkeypatch.setattr(provider("sms"), "find", lambda **question: asked.append(question["since"]))
        sandbox.rule("silent_before", call="message", phone=phone)
        post(alice, phone)
        Message.objects.update(created_at="2026-01-01T00:00:00Z")
        attempted_at = Message.objects.get().attempted_at
        post(alice, phone)
        assert asked == [attempted_at]

    def test_does_not_hold_back_a_new_text_once_the_window_has_ended(self, alice, phone, sandbox):
        sandbox.rule("silent_after", call="message", phone=phone)
        post(alice, phone)
        turn_back(MINUTE)
        assert post(alice, phone).json()["data"]["isDuplicate"] is False
        assert (statuses(), len(sandbox.messages(phone))) == ([UNKNOWN, SENT], 2)
