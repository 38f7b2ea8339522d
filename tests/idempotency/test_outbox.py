"""A message is written with the change or not at all, and sent right after the commit."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.db.transaction import TransactionManagementError
from django.utils.translation import gettext_lazy

from idempotency import outbox
from idempotency.exceptions import UnknownTopic
from idempotency.models import MessageState
from tests.lab.models import Effect
from tests.lab.operations import lab_db
from tests.lab.outbox import Outbox
from tests.lab.wire import traffic

pytestmark = lab_db
ON_POSTGRESQL = pytest.mark.parametrize(
    "database", [pytest.param("default", id="postgresql", marks=pytest.mark.postgresql)]
)


class TestPublish:
    def test_writes_what_is_to_be_sent(self, box: Outbox) -> None:
        payload = {"订单": "SO1", "lines": [{"sku": "A", "n": 1.5, "gift": None, "ok": True}]}
        with box.atomic():
            message_id = outbox.publish("lab.happened", payload, key="SO1", using=box.database)

        message = box.messages.get()
        assert (message.message_id, message.topic, message.key) == (message_id, "lab.happened", "SO1")
        assert (message.state, message.attempts, message.token) == (MessageState.PENDING, 0, None)
        assert message.payload == ('{"订单":"SO1","lines":[{"sku":"A","n":1.5,"gift":null,"ok":true}]}')

    def test_takes_the_change_with_it_or_nothing(self, box: Outbox) -> None:
        with box.rolled_back():
            Effect.objects.using(box.database).create(name="changed")
            box.write(1)

        assert (box.messages.count(), Effect.objects.using(box.database).count()) == (0, 0)

    def test_is_one_insert(self, box: Outbox) -> None:
        with box.atomic(), traffic(box.connection) as counted:
            box.write(1)

        assert [sql.split()[0] for sql in counted.statements] == ["INSERT"]

    @ON_POSTGRESQL
    def test_is_one_round_trip(self, box: Outbox, settings: Any) -> None:
        settings.IDEMPOTENCY_OUTBOX_RELAY_ON_COMMIT = True
        with box.atomic():
            Effect.objects.using(box.database).exists()  # the BEGIN goes with the first statement
            with traffic(box.connection) as counted:
                box.write(1)

        assert len(counted.messages) == 1

    def test_uses_the_database_of_the_records_by_default(
        self, box: Outbox, database: str, settings: Any
    ) -> None:
        settings.IDEMPOTENCY_DATABASE = database
        with box.atomic():
            outbox.publish("lab.happened", {})

        assert box.messages.count() == 1


@pytest.mark.parametrize("database", [pytest.param("default", id="one")])
class TestRefusal:
    def test_outside_a_transaction_says_what_to_do(self, box: Outbox) -> None:
        with pytest.raises(TransactionManagementError, match=r"inside transaction\.atomic\(\)"):
            box.write(1)

        assert box.messages.count() == 0

    def test_of_a_topic_that_nobody_knows(self, box: Outbox) -> None:
        with box.atomic(), pytest.raises(UnknownTopic, match=r"lab[.]hapened"):
            box.write(1, topic="lab.hapened")

        assert box.messages.count() == 0

    @pytest.mark.parametrize(
        ("value", "where"),
        [
            (Decimal("1.50"), "payload['value']: Decimal"),
            (datetime(2026, 1, 1, tzinfo=UTC), "payload['value']: datetime"),
            (float("nan"), "payload['value']: float"),
            (float("inf"), "payload['value']: float"),
            ((1, 2), "payload['value']: tuple"),
            (b"bytes", "payload['value']: bytes"),
            ({1: "a"}, "payload['value']: dict"),
            ([0, {"deep": {2}}], "payload['value'][1]['deep']: set"),
            (gettext_lazy("state"), "payload['value']: __proxy__"),
        ],
    )
    def test_of_what_is_no_json(self, box: Outbox, value: Any, where: str) -> None:
        place, kind = where.split(": ")
        with box.atomic(), pytest.raises(TypeError) as error:
            outbox.publish("lab.happened", {"value": value}, using=box.database)

        assert str(error.value).startswith(f"{place} is no JSON: {kind}. ")
        assert box.messages.count() == 0

    @pytest.mark.parametrize(
        ("payload", "key", "error", "says"),
        [
            ([1], "", TypeError, "is a dict"),
            ({"message_id": "x"}, "", ValueError, "message_id"),
            ({"text": "x" * 65_536}, "", ValueError, "publish where it is"),
            ({"text": "汉" * 22_000}, "", ValueError, "more than 65,536"),
            ({"text": "\ud800"}, "", ValueError, "surrogates"),
            ({"at": [{"__type__": "date", "__value__": "2026"}]}, "", ValueError, r"'at'..0. has the names"),
            ({"__type__": "x", "__value__": None}, "", ValueError, "payload has the names"),
            ({}, 7, TypeError, "key of a message is text, not int"),
            ({}, "x" * 256, ValueError, "at most 255"),
            ({}, "a\0b", ValueError, "printable"),
        ],
    )
    def test_of_what_cannot_be_sent(
        self, box: Outbox, payload: Any, key: Any, error: type[Exception], says: str
    ) -> None:
        with box.atomic(), pytest.raises(error, match=says):
            outbox.publish("lab.happened", payload, key=key, using=box.database)

        assert box.messages.count() == 0

    def test_leaves_names_with_underscores_to_the_payload(self, box: Outbox) -> None:
        payload = {"one": {"__type__": "x"}, "more": {"__type__": "x", "__value__": 1, "unit": "kg"}}
        with box.atomic():
            outbox.publish("lab.happened", payload, using=box.database)

        assert json.loads(box.messages.get().payload) == payload

    def test_leaves_room_for_the_largest(self, box: Outbox) -> None:
        with box.atomic():
            outbox.publish("lab.happened", {"text": "x" * (65_536 - 11)}, using=box.database)

        assert len(box.messages.get().payload) == 65_536
