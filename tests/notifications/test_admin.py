import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client

from idempotency.leases import Lease
from idempotency.models import IdempotencyRecord
from idempotency.values import Operation
from notifications.models import Contact, Message, Window
from tests.notifications.texting import FAILED, SENT, UNKNOWN, post, statuses, unfinished
from tests.shopping import shopper

pytestmark = [pytest.mark.django_db, pytest.mark.urls("config.urls")]


@pytest.fixture
def staff(client):
    client.force_login(get_user_model().objects.create_superuser("staff"))
    return client


@pytest.fixture
def unknown(texting, phone):
    texting.rule("silent_after", call="message", phone=phone)
    post(shopper("alice"), phone)
    return Message.objects.get(status=UNKNOWN)


class TestMessages:
    def test_are_listed_without_their_whole_number(self, staff, unknown):
        page = staff.get("/admin/notifications/message/?status__exact=UNKNOWN").content.decode()
        assert unknown.number in page
        assert unknown.masked_recipient in page
        assert unknown.recipient not in page

    @pytest.mark.parametrize("action", ["change", "delete"])
    def test_cannot_be_changed(self, staff, unknown, action):
        answer = staff.post(f"/admin/notifications/message/{unknown.pk}/{action}/", {"status": "SENT"})
        assert (answer.status_code, Message.objects.get().status) == (403, UNKNOWN)

    def test_have_windows_that_can_be_looked_at(self, staff, unknown):
        window = Window.objects.get()
        assert unknown.number in staff.get("/admin/notifications/window/").content.decode()
        assert staff.get(f"/admin/notifications/window/{window.pk}/change/").status_code == 200


class TestDecision:
    @pytest.fixture(autouse=True)
    def _silence(self, texting):
        """Whoever asks the provider gets no answer."""
        texting.rule("error_before", call="find", provider="sms", times=0)

    def somebody(self, *permissions):
        user = get_user_model().objects.create_user("somebody", is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
        client = Client()
        client.force_login(user)
        return client

    def decide(self, client, action, *messages):
        asked = {"action": action, "_selected_action": [str(message.pk) for message in messages]}
        return client.post("/admin/notifications/message/", asked, follow=True).content.decode()

    @pytest.fixture
    def decider(self):
        return self.somebody("view_message", "change_message")

    def test_that_it_was_sent_makes_repeats_duplicates(self, decider, unknown, phone, texting):
        assert "Settled: 1. Left as they are" in self.decide(decider, "was_sent", unknown)
        message = Message.objects.get()
        assert (message.status, message.sent_at, message.failure) == (SENT, unknown.attempted_at, "")
        repeat = post(shopper("bob"), phone)
        assert (repeat.status_code, repeat.json()["data"]["isDuplicate"]) == (200, True)
        assert (unfinished(), len(texting.messages(phone))) == (0, 1)

    def test_that_it_was_not_sent_frees_the_window(self, decider, unknown, phone, texting):
        assert "Settled: 1." in self.decide(decider, "was_not_sent", unknown)
        assert (statuses(), Message.objects.get().failure, unfinished()) == ([FAILED], "sms_not_sent", 0)
        again = post(shopper("bob"), phone)
        assert (again.status_code, again.json()["data"]["isDuplicate"]) == (200, False)
        assert statuses() == [FAILED, SENT]

    @pytest.mark.parametrize("action", ["was_sent", "was_not_sent"])
    def test_is_no_second_one(self, decider, unknown, action, caplog):
        self.decide(decider, "was_not_sent", unknown)
        assert "Settled: 0. Left as they are, because somebody knows or asks: 1." in self.decide(
            decider, action, unknown
        )
        assert statuses() == [FAILED]
        assert [record.message.count(unknown.number) for record in caplog.records
                if "says that" in record.message] == [1]  # fmt: skip

    def test_of_what_was_sent_changes_nothing(self, decider, texting, phone):
        post(shopper("alice"), phone)
        assert "Settled: 0." in self.decide(decider, "was_not_sent", Message.objects.get())
        assert (statuses(), Window.objects.get().ends_at > Window.objects.get().opened_at) == ([SENT], True)

    def test_waits_for_whoever_asks_just_now(self, decider, unknown, settings):
        record = IdempotencyRecord.objects.get()
        operation = Operation(name=record.operation, scope=record.scope, key=record.key)
        Lease(connection.alias, operation).take(settings.NOTIFICATIONS_LEASE)
        assert "Settled: 0." in self.decide(decider, "was_not_sent", unknown)
        assert (statuses(), unfinished()) == ([UNKNOWN], 1)

    def test_needs_the_permission_to_change_messages(self, unknown):
        viewer = self.somebody("view_message")
        assert "was_sent" not in viewer.get("/admin/notifications/message/").content.decode()
        self.decide(viewer, "was_not_sent", unknown)
        assert (statuses(), unfinished()) == ([UNKNOWN], 1)

    def test_is_made_under_atomic_requests_too(self, decider, unknown, settings):
        settings.DATABASES["default"]["ATOMIC_REQUESTS"] = True
        connection.settings_dict["ATOMIC_REQUESTS"] = True
        try:
            assert "Settled: 1." in self.decide(decider, "was_sent", unknown)
        finally:
            settings.DATABASES["default"]["ATOMIC_REQUESTS"] = False
            connection.settings_dict["ATOMIC_REQUESTS"] = False
        assert statuses() == [SENT]

    def test_is_asked_for_in_chinese(self, decider, unknown):
        page = decider.get("/admin/notifications/message/", headers={"Accept-Language": "zh-hans"})
        assert "确认未发送，并释放其防重窗口" in page.content.decode()


class TestContacts:
    def save(self, staff, **members):
        user = get_user_model().objects.create(username="bob")
        return staff.post("/admin/notifications/contact/add/", {"user": user.pk, "email": "", **members})

    def test_keep_the_number_in_one_spelling_and_list_it_masked(self, staff):
        assert self.save(staff, phone="138 0013 8000").status_code == 302
        assert Contact.objects.get().phone == "+8613800138000"
        page = staff.get("/admin/notifications/contact/").content.decode()
        assert ("+86138****8000" in page, "13800138000" in page) == (True, False)

    def test_refuse_what_is_no_number(self, staff):
        assert self.save(staff, phone="110").status_code == 200
        assert Contact.objects.count() == 0
