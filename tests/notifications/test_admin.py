import pytest
from django.contrib.auth import get_user_model

from notifications.models import Contact, Message, Window
from tests.notifications.texting import UNKNOWN, post
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
