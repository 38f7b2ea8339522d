"""The admin shows messages, and lets those who may decide about dead letters."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import translation

from idempotency.admin import tables
from idempotency.models import OutboxMessage
from tests.lab.outbox import Broker, Outbox

LIST = "admin:idempotency_outboxmessage_changelist"
DETAIL = "admin:idempotency_outboxmessage_change"

pytestmark = pytest.mark.django_db(transaction=True, databases="__all__")


@pytest.fixture(autouse=True)
def messages_in_each_database(database: str, settings: Any) -> None:
    settings.IDEMPOTENCY_DATABASE = database
    settings.IDEMPOTENCY_OUTBOX_MAX_ATTEMPTS = 1


@pytest.fixture
def dead(box: Outbox, mail: Broker) -> OutboxMessage:
    """A dead letter, which holds back the second message of its key; and one that was sent."""

    def refuse(envelope: Any) -> None:
        if envelope.payload["number"] == 1:
            raise ValueError("no such phone")

    mail.before = refuse
    box.publish(1, 2, key="SO1")
    box.publish(3)
    box.relay()
    mail.before = lambda envelope: None
    return box.messages.dead().get()


def somebody(*permissions: str) -> Client:
    user = User.objects.create_user("somebody", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def viewer() -> Client:
    return somebody("view_outboxmessage")


@pytest.fixture
def decider() -> Client:
    return somebody("view_outboxmessage", "change_outboxmessage")


def listed(client: Client, **query: Any) -> list[OutboxMessage]:
    response = client.get(reverse(LIST), query)
    assert response.status_code == 200
    return list(response.context_data["cl"].result_list)


def act(client: Client, action: str, *messages: OutboxMessage) -> str:
    data = {"action": action, "_selected_action": [str(message.pk) for message in messages]}
    return text(client.post(reverse(LIST), data, follow=True).content.decode())


def text(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


class TestList:
    def test_shows_what_stands_where(self, viewer: Client, dead: OutboxMessage) -> None:
        page = text(viewer.get(reverse(LIST)).content.decode())

        assert f"{dead.message_id} lab.happened SO1 dead letter 0 minutes 1 ValueError: no such phone" in page
        assert "lab.happened SO1 to be sent 0 minutes 0 -" in page
        assert "lab.happened - sent 0 minutes 0 -" in page

    def test_has_the_newest_first(self, viewer: Client, dead: OutboxMessage) -> None:
        assert [message.state for message in listed(viewer)] == ["SENT", "PENDING", "DEAD"]

    def test_is_filtered_by_state(self, viewer: Client, dead: OutboxMessage) -> None:
        assert listed(viewer, state__exact="DEAD") == [dead]

    def test_is_searched_by_key_and_by_id(self, viewer: Client, dead: OutboxMessage) -> None:
        assert len(listed(viewer, q=" SO1 ")) == 2
        assert listed(viewer, q=str(dead.message_id)) == [dead]
        assert listed(viewer, q="SO") == []

    def test_is_counted_up_to_a_bound(
        self, viewer: Client, dead: OutboxMessage, database: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tables, "NEWEST", 2)
        with CaptureQueriesContext(connections[database]) as queries:
            response = viewer.get(reverse(LIST))

        counts = [query["sql"] for query in queries if "COUNT(" in query["sql"].upper()]
        assert counts
        assert all("LIMIT 2" in sql for sql in counts if "outbox" in sql)
        assert response.context_data["cl"].result_count == 2
        assert response.context_data["subtitle"] == "The first 2 messages. A search finds any."

    def test_leaves_payloads_where_they_are(self, viewer: Client, dead: OutboxMessage, database: str) -> None:
        with CaptureQueriesContext(connections[database]) as queries:
            listed(viewer)

        assert not [query["sql"] for query in queries if "payload" in query["sql"]]

    def test_speaks_chinese(self, viewer: Client, dead: OutboxMessage) -> None:
        with translation.override("zh-hans"):
            page = viewer.get(reverse(LIST), headers={"Accept-Language": "zh-hans"}).content.decode()

        assert "死信" in page


class TestDetail:
    def test_shows_the_payload_and_changes_nothing(self, decider: Client, dead: OutboxMessage) -> None:
        address = reverse(DETAIL, args=[dead.pk])
        page = decider.get(address).content.decode()

        assert "&quot;number&quot;: 1" in page
        assert "no such phone" in page
        assert decider.post(address, {"key": "other"}).status_code == 403

    def test_escapes_what_it_shows(self, viewer: Client, dead: OutboxMessage, box: Outbox) -> None:
        evil = "<script>alert(1)</script>"
        box.messages.update(payload=f'{{"a": "{evil}"}}', error=evil)

        assert evil not in viewer.get(reverse(DETAIL, args=[dead.pk])).content.decode()


class TestPermissions:
    def test_are_needed_to_view(self, dead: OutboxMessage) -> None:
        assert somebody().get(reverse(LIST)).status_code == 403

    @pytest.mark.parametrize("action", ["requeue", "drop"])
    def test_to_view_decide_nothing(
        self, viewer: Client, dead: OutboxMessage, box: Outbox, action: str
    ) -> None:
        page = act(viewer, action, dead)

        assert "dead letter will be" not in page
        assert box.states() == ["DEAD", "PENDING", "SENT"]

    def test_let_nobody_add_or_delete(self, admin_client: Client, dead: OutboxMessage, box: Outbox) -> None:
        assert admin_client.get(reverse("admin:idempotency_outboxmessage_add")).status_code == 403
        delete = reverse("admin:idempotency_outboxmessage_delete", args=[dead.pk])
        assert admin_client.post(delete, {"post": "yes"}).status_code == 403
        act(admin_client, "delete_selected", dead)
        assert box.messages.count() == 3


class TestActions:
    def test_requeue_sends_dead_letters_again(
        self, decider: Client, dead: OutboxMessage, box: Outbox, mail: Broker
    ) -> None:
        assert "1 dead letter will be sent again." in act(decider, "requeue", dead)

        assert box.relay_all() == 2
        assert mail.numbers == [3, 1, 2]

    def test_drop_frees_the_key_and_keeps_the_row(
        self, decider: Client, dead: OutboxMessage, box: Outbox, mail: Broker
    ) -> None:
        assert "1 dead letter was dropped." in act(decider, "drop", dead)

        assert box.relay_all() == 1
        assert mail.numbers == [3, 2]
        dropped = box.messages.get(pk=dead.pk)
        assert (dropped.state, dropped.error, dropped.ended_at is None) == (
            "DROPPED",
            "ValueError: no such phone",
            False,
        )

    @pytest.mark.parametrize("action", ["requeue", "drop"])
    def test_change_nothing_but_dead_letters(
        self, decider: Client, dead: OutboxMessage, box: Outbox, action: str
    ) -> None:
        page = act(decider, action, *box.messages.exclude(pk=dead.pk))

        assert "None of the selected messages is in a state for this: nothing was changed." in page
        assert box.states() == ["DEAD", "PENDING", "SENT"]

    def test_send_again_sends_what_was_sent_with_the_same_id(
        self, decider: Client, dead: OutboxMessage, box: Outbox, mail: Broker
    ) -> None:
        ids = set(box.messages.values_list("message_id", flat=True))
        assert "1 message will be sent once more." in act(decider, "send_again", *box.messages.all())

        box.relay_all()
        assert mail.numbers[0] == 3
        assert mail.numbers.count(3) == 2
        assert set(box.messages.values_list("message_id", flat=True)) == ids
        assert box.messages.get(pk=dead.pk).state == "DEAD"
