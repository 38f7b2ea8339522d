"""``POST /api/sms``, at the sandbox over real HTTP."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from notifications.models import Message, Window
from notifications.providers import provider
from tests.notifications.texting import SENT, post, statuses, turn_back, unfinished
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


class TestSend:
    def test_sends_and_tells_when(self, alice, phone, sandbox):
        before = timezone.now()
        answer = post(alice, phone)
        assert (answer.status_code, answer.json()["message"]) == (200, "SMS sent"), answer.content
        data = answer.json()["data"]
        assert data == {"isDuplicate": False, "sentAt": data["sentAt"]}
        assert before - SECOND < datetime.fromisoformat(data["sentAt"]) < timezone.now() + SECOND
        (sent,) = sandbox.messages(phone)
        message = Message.objects.get()
        assert (sent["phone"], sent["template"], sent["key"]) == (phone, "LOGIN", message.provider_key)
        assert (message.status, message.provider_no) == (SENT, sent["message_no"])
        assert message.sent_at == datetime.fromisoformat(data["sentAt"])
        assert unfinished() == 0

    def test_answers_a_repeat_of_anybody_with_the_first(self, alice, phone, sandbox):
        first = post(alice, phone).json()["data"]
        for client in (alice, shopper("bob")):
            repeat = post(client, phone)
            assert (repeat.status_code, repeat["Idempotent-Replayed"]) == (200, "true")
            assert repeat.json()["data"] == {"isDuplicate": True, "sentAt": first["sentAt"]}
        assert len(sandbox.messages(phone)) == 1
        assert (Message.objects.count(), Window.objects.count()) == (1, 1)

    def test_does_not_ask_the_provider_for_a_repeat(self, alice, phone, settings):
        post(alice, phone)
        settings.SANDBOX_URL = f"http://127.0.0.1:{free_port()}"
        provider.cache_clear()
        assert post(alice, phone).json()["data"]["isDuplicate"] is True

    def test_speaks_chinese(self, alice, phone):
        answer = alice.post(
            "/api/sms", {"phone": phone, "template": "T", "biz_id": "1"}, headers={"Accept-Language": "zh-CN"}
        )
        assert answer.json()["message"] == "短信已发送"

    def test_is_for_those_who_are_logged_in(self, client, phone, sandbox):
        assert client.post("/api/sms", {"phone": phone}, content_type="application/json").status_code == 401
        assert (sandbox.messages(phone), statuses()) == ([], [])

    def test_under_atomic_requests_answers_the_same(self, alice, phone, settings):
        settings.DATABASES["default"]["ATOMIC_REQUESTS"] = True
        try:
            answers = [post(alice, phone) for _ in range(2)]
        finally:
            settings.DATABASES["default"]["ATOMIC_REQUESTS"] = False
        assert [answer.status_code for answer in answers] == [200, 200]


class TestMinute:
    def test_is_not_the_one_on_the_clock(self, alice, phone, sandbox):
        """At :59 and :01 are two minutes of the clock, and one window."""
        post(alice, phone)
        turn_back(59 * SECOND)
        assert post(alice, phone).json()["data"]["isDuplicate"] is True
        turn_back(SECOND)
        assert post(alice, phone).json()["data"]["isDuplicate"] is False
        assert len(sandbox.messages(phone)) == 2

    def test_is_not_extended_by_repeats(self, alice, phone, sandbox):
        post(alice, phone)
        for _ in range(5):
            turn_back(11 * SECOND)
            assert post(alice, phone).json()["data"]["isDuplicate"] is True
        turn_back(5 * SECOND)
        assert post(alice, phone).json()["data"]["isDuplicate"] is False
        assert len(sandbox.messages(phone)) == 2

    def test_begins_with_each_text_that_is_sent(self, alice, phone, sandbox):
        duplicates = []
        for _ in range(3):
            duplicates += [post(alice, phone).json()["data"]["isDuplicate"] for _ in range(2)]
            turn_back(MINUTE)
        assert duplicates == [False, True] * 3
        assert len(sandbox.messages(phone)) == 3
        assert (statuses(), Window.objects.count()) == ([SENT] * 3, 1)


class TestKinds:
    def test_verification_is_one_for_each_number_and_template(self, alice, phone, sandbox):
        for biz_id in ("A", "B"):
            post(alice, phone, biz_id=biz_id)
        post(alice, phone, template="REGISTER")
        assert [text["template"] for text in sandbox.messages(phone)] == ["LOGIN", "REGISTER"]

    def test_notification_is_one_for_each_template_and_business_number_for_ever(self, alice, phone, sandbox):
        other = f"{phone[:-5]}9{phone[-4:]}"
        asked = {"kind": "notification", "template": "order_paid", "biz_id": phone}
        assert post(alice, phone, **asked).json()["data"]["isDuplicate"] is False
        turn_back(timedelta(days=4000))
        assert post(alice, other, **asked).json()["data"]["isDuplicate"] is True
        assert (
            post(alice, phone, **{**asked, "template": "order_shipped"}).json()["data"]["isDuplicate"]
            is False
        )
        assert (len(sandbox.messages(phone)), sandbox.messages(other)) == (2, [])

    def test_marketing_is_one_for_each_number_and_campaign_on_a_day_of_the_shop(self, alice, phone, sandbox):
        def campaign(number):
            answer = post(alice, phone, kind="marketing", campaign_id=number, template=f"T{number}")
            return answer.json()["data"]["isDuplicate"]

        assert [campaign("A"), campaign("A"), campaign("B")] == [False, True, False]
        window = Window.objects.order_by("pk").first()
        midnight = timezone.localtime(window.ends_at)
        assert (midnight.hour, midnight.minute, midnight.tzinfo.key) == (0, 0, "Asia/Shanghai")
        assert timedelta(0) < window.ends_at - window.opened_at <= timedelta(days=1)
        turn_back(window.ends_at - timezone.now() - 2 * SECOND)  # two seconds before that midnight
        assert campaign("A") is True
        turn_back(3 * SECOND)
        assert [campaign("A"), campaign("A")] == [False, True]
        assert len(sandbox.messages(phone)) == 3

    def test_a_text_without_a_kind_is_one_for_number_template_and_business_number(
        self, alice, phone, sandbox
    ):
        """SMS-04"""
        four = [("order_paid", "1"), ("order_paid", "2"), ("order_shipped", "1"), ("order_shipped", "2")]
        for template, biz_id in [*four, four[0]]:
            post(alice, phone, kind=..., template=template, biz_id=biz_id)
        assert [text["template"] for text in sandbox.messages(phone)] == [template for template, _ in four]
        turn_back(MINUTE)
        post(alice, phone, kind=None, template="order_paid", biz_id="1")
        assert len(sandbox.messages(phone)) == 5

    def test_kinds_do_not_meet(self, alice, phone, sandbox):
        asked = {"template": "X", "biz_id": f"{phone}-1", "campaign_id": "X"}
        for kind in (..., "verification", "notification", "marketing"):
            assert post(alice, phone, kind=kind, **asked).json()["data"]["isDuplicate"] is False
        assert len(sandbox.messages(phone)) == 4

    def test_parts_with_the_separator_do_not_meet(self, alice, phone, sandbox):
        for template, biz_id in [("A_B", "C"), ("A", "B_C"), ("A", "B%5FC"), ("A", "b_c")]:
            post(alice, phone, kind=..., template=template, biz_id=biz_id)
        assert len(sandbox.messages(phone)) == 4
