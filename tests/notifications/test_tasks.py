"""Receipts by text and mail, as the message "order paid" brings them."""

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model

from config.celery import app
from idempotency.exceptions import OutcomeUnknown
from notifications.models import Contact, Message
from notifications.providers import provider
from notifications.tasks import send_receipt_mail, send_receipt_sms
from tests.notifications.stubs import http_stub
from tests.notifications.texting import FAILED, SENT, UNKNOWN, post, statuses, turn_back
from tests.shopping import shopper

pytestmark = [pytest.mark.django_db, pytest.mark.urls("config.urls")]


@pytest.fixture(autouse=True)
def _shop(texting):
    pass


@pytest.fixture
def paid(phone):
    """What an order of a buyer who can be reached tells when it is paid."""
    user = get_user_model().objects.create(username="alice")
    Contact.objects.create(user=user, phone=phone, email="alice@example.com")
    money = {"amount_minor": 3980, "currency": "CNY", "paid_at": "2026-11-30T18:00:00+08:00"}
    return {"message_id": "1", "order_no": f"ORD{phone[1:]}", "user_id": user.pk, **money}


class TestReceiptByText:
    def test_is_sent_once_however_often_the_message_comes(self, paid, phone, sandbox):
        assert [send_receipt_sms(**{**paid, "message_id": str(n)}) for n in range(3)] == [
            "sent",
            "duplicate",
            "duplicate",
        ]
        (sent,) = sandbox.messages(phone)
        assert (sent["template"], sent["params"]) == ("order_paid", {"biz_id": paid["order_no"]})

    def test_cannot_be_taken_by_a_text_that_somebody_asks_for(self, paid, phone, sandbox):
        other = f"{phone[:-5]}8{phone[-4:]}"
        asked = {"kind": "notification", "template": "order_paid", "biz_id": paid["order_no"]}
        assert post(shopper("bob"), other, **asked).status_code == 200
        assert send_receipt_sms(**paid) == "sent"
        assert [len(sandbox.messages(number)) for number in (other, phone)] == [1, 1]

    def test_needs_a_contact(self, paid):
        assert send_receipt_sms(**{**paid, "user_id": 0}) == "no contact"
        Contact.objects.update(phone="")
        assert send_receipt_sms(**paid) == "no contact"
        Contact.objects.update(phone="110")
        assert (send_receipt_sms(**paid), statuses()) == ("no contact", [])

    def test_that_is_rejected_is_not_tried_again_by_itself(self, paid, phone, sandbox):
        """SMS-05"""
        sandbox.rule("decline", call="message", phone=phone)
        assert (send_receipt_sms(**paid), statuses()) == ("sms_rejected", [FAILED])
        assert send_receipt_sms(**paid) == "sent"  # somebody mended the template and sends it again
        assert (statuses(), len(sandbox.messages(phone))) == ([FAILED, SENT], 1)

    def test_that_cannot_be_sent_now_is_tried_again_with_growing_pauses(self, paid, phone, sandbox):
        """SMS-05"""
        sandbox.rule("busy", call="message", phone=phone, times=3)
        result = send_receipt_sms.apply(kwargs=paid)
        assert (result.get(), len(sandbox.messages(phone))) == ("sent", 1)
        assert statuses() == [FAILED] * 3 + [SENT]
        assert (send_receipt_sms.retry_backoff, send_receipt_sms.max_retries) == (2, 600)

    def test_never_waits_until_redis_delivers_it_again(self):
        visible = app.conf.broker_transport_options["visibility_timeout"]
        assert send_receipt_sms.retry_backoff_max == send_receipt_mail.retry_backoff_max == 300
        assert send_receipt_sms.retry_backoff_max < visible / 2

    def test_after_an_odd_answer_is_asked_for(self, paid, phone, sandbox, settings):
        """What a gateway says in the provider's name loses no receipt."""
        with http_stub() as stub:
            settings.SANDBOX_URL = stub.url
            provider.cache_clear()
            stub.answers = [(200, {})]
            with pytest.raises(OutcomeUnknown):
                send_receipt_sms.run(**paid)
        assert statuses() == [UNKNOWN]
        settings.SANDBOX_URL = sandbox.url
        provider.cache_clear()
        assert (send_receipt_sms(**paid), len(sandbox.messages(phone)), statuses()) == ("sent", 1, [SENT])

    def test_of_which_nobody_knows_is_asked_for_and_not_sent_again(self, paid, phone, sandbox):
        """SMS-02"""
        sandbox.rule("silent_after", call="message", phone=phone, seconds=2)
        sandbox.rule("error_before", call="find", provider="sms", times=2)
        for _ in range(3):
            with pytest.raises(OutcomeUnknown):
                send_receipt_sms.run(**paid)
        assert statuses() == [UNKNOWN]
        assert send_receipt_sms(**paid) == "duplicate"
        assert (statuses(), len(sandbox.messages(phone))) == ([SENT], 1)

    def test_of_which_nobody_will_know_is_left_to_staff(self, paid, phone, sandbox):
        sandbox.rule("silent_after", call="message", phone=phone)
        sandbox.rule("error_before", call="find", provider="sms", times=0)
        with pytest.raises(OutcomeUnknown):
            send_receipt_sms.run(**paid)
        turn_back(timedelta(days=3))
        assert send_receipt_sms(**paid) == "unknown"
        assert (statuses(), len(sandbox.messages(phone))) == ([UNKNOWN], 1)


class TestReceiptByMail:
    @pytest.fixture(autouse=True)
    def _mailbox(self, settings):
        settings.MAILERS = {"default": {"BACKEND": "django.core.mail.backends.locmem.EmailBackend"}}

    def test_is_sent_once_beside_the_text(self, paid, phone, sandbox, mailoutbox):
        assert [send_receipt_mail(**paid), send_receipt_mail(**paid)] == ["sent", "duplicate"]
        assert send_receipt_sms(**paid) == "sent"
        (letter,) = mailoutbox
        assert (letter.to, letter.subject) == (
            ["alice@example.com"],
            f"Your order {paid['order_no']} is paid",
        )
        message = Message.objects.get(channel="email")
        assert letter.extra_headers["Message-ID"] == message.provider_no
        assert message.provider_no == f"<{message.provider_key}@localhost>"
        assert len(sandbox.messages(phone)) == 1

    def test_needs_an_address(self, paid, mailoutbox):
        Contact.objects.update(email="")
        assert (send_receipt_mail(**paid), mailoutbox) == ("no contact", [])

    def test_of_which_nobody_knows_stays_so(self, paid, monkeypatch, mailoutbox):
        monkeypatch.setattr(
            "django.core.mail.backends.locmem.EmailBackend.send_messages",
            lambda *given: (_ for _ in ()).throw(TimeoutError()),
        )
        for _ in range(3):
            with pytest.raises(OutcomeUnknown):
                send_receipt_mail.run(**paid)
        assert (statuses(), mailoutbox, provider("email").is_once_by_key) == ([UNKNOWN], [], False)
