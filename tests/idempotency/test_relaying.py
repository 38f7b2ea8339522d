"""A relay sends what is due, and writes down what became of it."""

import logging
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from idempotency import deliveries, relaying
from idempotency.dialects import Later
from idempotency.exceptions import BrokerUnavailable
from tests.lab.operations import lab_db
from tests.lab.outbox import Broker, Outbox
from tests.lab.races import PATIENCE, Background
from tests.lab.relays import fail
from tests.lab.wire import traffic

pytestmark = lab_db


class TestRelay:
    def test_hands_over_what_was_published(self, box: Outbox, mail: Broker) -> None:
        (message_id,) = box.publish(7, key="SO1")

        relayed = box.relay()

        assert (relayed.claimed, relayed.sent, relayed.failed) == (1, 1, 0)
        assert mail.heard == [
            relaying.Envelope(
                id=message_id, topic="lab.happened", payload={"number": 7}, key="SO1", routes=("lab.hear",)
            )
        ]

    def test_marks_it_as_sent(self, box: Outbox) -> None:
        box.publish(1)
        box.relay()

        message = box.messages.get()
        assert (message.state, message.due_at, message.token, message.leased_until) == ("SENT", *[None] * 3)
        assert timedelta(0) <= message.ended_at - message.created_at < timedelta(seconds=PATIENCE)
        assert box.relay().claimed == 0

    def test_sends_in_batches_the_oldest_first(self, box: Outbox, mail: Broker) -> None:
        box.publish(*range(5))

        assert [box.relay(batch_size=2).sent for _ in range(4)] == [2, 2, 1, 0]
        assert mail.numbers == [0, 1, 2, 3, 4]

    def test_commits_the_claim_before_anything_is_sent(self, box: Outbox, mail: Broker) -> None:
        seen: list[Any] = []
        look = lambda: seen.append(box.messages.free().count())  # noqa: E731
        mail.before = lambda envelope: Background(look).result()
        box.publish(1, 2)

        box.relay()

        assert seen == [0, 0]

    def test_refuses_to_run_inside_a_transaction(self, box: Outbox, mail: Broker) -> None:
        box.publish(1)
        with box.atomic(), pytest.raises(RuntimeError, match="durable"):
            box.relay()

        assert (mail.heard, box.states()) == ([], ["PENDING"])

    def test_asks_without_a_transaction_where_nothing_is_due(self, box: Outbox) -> None:
        with traffic(box.connection) as counted:
            box.relay()

        assert [sql.split()[0] for sql in counted.statements] == ["SELECT"]

    def test_marks_a_batch_by_one_statement(self, box: Outbox) -> None:
        box.publish(*range(5))
        with traffic(box.connection) as counted:
            box.relay()

        assert [sql.split()[0] for sql in counted.statements].count("UPDATE") == 2  # lease and mark

    def test_claims_nothing_without_a_sender(self, box: Outbox, settings: Any) -> None:
        box.publish(1)
        settings.IDEMPOTENCY_OUTBOX_SENDER = "tests.lab.outbox.nobody"

        with pytest.raises(ImproperlyConfigured, match="nobody"):
            box.relay()

        assert box.messages.get().token is None

    def test_stops_at_half_of_the_lease_and_releases_the_rest(
        self, box: Outbox, mail: Broker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = [0.0]
        monkeypatch.setattr(deliveries, "monotonic", lambda: now[0])
        mail.before = lambda envelope: now.__setitem__(0, now[0] + 8)  # of 30 seconds
        box.publish(1, 2, 3, 4)

        assert (box.relay().sent, mail.numbers) == (2, [1, 2])
        assert box.messages.pending().free().count() == 2


class TestFailure:
    def test_of_the_message_is_counted_and_put_off(self, box: Outbox, mail: Broker) -> None:
        mail.before = fail(ValueError("amqp://guest:se/cr@et@host is no address\n" + "x" * 500))
        box.publish(1)

        assert box.relay().failed == 1
        message = box.messages.get()
        assert (message.state, message.attempts, message.token) == ("PENDING", 1, None)
        assert message.error.startswith("ValueError: amqp://***@host is no address x")
        assert len(message.error) == 255
        assert message.due_at > message.created_at
        assert box.relay().claimed == 0

    def test_too_often_makes_a_dead_letter(
        self, box: Outbox, mail: Broker, settings: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        settings.IDEMPOTENCY_OUTBOX_MAX_ATTEMPTS = 3
        mail.before = fail(ValueError("body of the message"), at={1})
        box.publish(1, 2)
        with caplog.at_level(logging.WARNING, "idempotency"):
            for _ in range(5):
                box.relay()
                box.make_due()

        message = box.messages.dead().get()
        assert (message.attempts, message.due_at, message.token) == (3, None, None)
        assert box.states() == ["DEAD", "SENT"]
        assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING", "ERROR"]
        assert "body of the message" not in caplog.text

    def test_waits_longer_each_time_up_to_a_bound(self) -> None:
        pauses = [deliveries.pause(attempts).total_seconds() for attempts in (1, 2, 5, 10, 1000)]

        assert [
            bound / 2 <= seconds <= bound for seconds, bound in zip(pauses, (2, 4, 32, 600, 600), strict=True)
        ] == [True] * 5

    def test_of_a_topic_that_left_the_routes_is_the_messages_own(self, box: Outbox, settings: Any) -> None:
        box.publish(1)
        settings.IDEMPOTENCY_OUTBOX_ROUTES = {}

        assert box.relay().failed == 1
        assert box.messages.get().error.startswith("UnknownTopic: ")

    def test_requeued_counts_from_the_beginning(self, box: Outbox, mail: Broker, settings: Any) -> None:
        settings.IDEMPOTENCY_OUTBOX_MAX_ATTEMPTS = 1
        mail.before = fail(ValueError("never"))
        box.publish(1)
        box.relay()

        assert (box.messages.requeue(), box.messages.requeue()) == (1, 0)
        message = box.messages.get()
        assert (message.state, message.attempts) == ("PENDING", 0)

    @pytest.mark.parametrize("verb", ["requeue", "drop"])
    def test_decides_nothing_about_other_messages(self, box: Outbox, mail: Broker, verb: str) -> None:
        box.publish(1)
        box.relay()
        box.publish(2)

        assert getattr(box.messages, verb)() == 0
        assert box.states() == ["SENT", "PENDING"]


class TestOutage:
    def test_loses_nothing_and_kills_nothing(self, box: Outbox, mail: Broker, settings: Any) -> None:
        settings.IDEMPOTENCY_OUTBOX_MAX_ATTEMPTS = 2
        ids = box.publish(*range(20))
        mail.before = fail(BrokerUnavailable("away"))
        for _ in range(10):
            assert not box.relay().is_broker_available
            box.make_due()
        assert (mail.heard, box.states()) == ([], ["PENDING"] * 20)
        assert set(box.messages.values_list("attempts", "token")) == {(0, None)}
        mail.before = lambda envelope: None

        assert box.relay_all() == 20
        assert [envelope.id for envelope in mail.heard] == ids

    def test_ends_the_batch_and_releases_the_rest(self, box: Outbox, mail: Broker) -> None:
        mail.before = fail(BrokerUnavailable("away"), at={2, 3})
        box.publish(1, 2, 3)

        relayed = box.relay()

        assert (relayed.claimed, relayed.sent, relayed.failed) == (3, 1, 0)
        assert mail.numbers == [1]
        assert list(box.messages.free().due().values_list("payload", flat=True)) == ['{"number":3}']

    def test_keeps_the_message_due_so_that_its_age_tells(self, box: Outbox, mail: Broker) -> None:
        mail.before = fail(BrokerUnavailable("away"))
        box.publish(1)
        before = box.messages.get().due_at
        box.relay()

        assert box.messages.get().due_at == before
        assert relaying.status(using=box.database).due == 1


class TestStatus:
    def test_counts_what_is_left(self, box: Outbox, mail: Broker, settings: Any) -> None:
        settings.IDEMPOTENCY_OUTBOX_MAX_ATTEMPTS = 1
        mail.before = fail(ValueError("never"), at={1})
        box.publish(1, 2)
        box.relay()
        settings.IDEMPOTENCY_OUTBOX_MAX_ATTEMPTS = 9
        mail.before = fail(ValueError("later"))
        box.publish(3)
        box.relay()
        box.publish(4)
        box.messages.due().update(due_at=Later(timedelta(minutes=-1)))

        status = relaying.status(using=box.database)

        assert (status.pending, status.due, status.dead) == (2, 1, 1)
        assert timedelta(seconds=60) <= status.oldest_due < timedelta(seconds=60 + PATIENCE)

    def test_has_no_age_where_nothing_is_due(self, box: Outbox) -> None:
        status = relaying.status(using=box.database)

        assert status == relaying.Status(pending=0, due=0, dead=0, oldest_due=None)

    def test_counts_up_to_a_bound(self, box: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(relaying, "COUNTED", 3)
        box.publish(*range(5))

        assert relaying.status(using=box.database).pending == 3


class TestAttempt:
    def test_left_behind_tells_no_more_and_begins_no_other(self, box: Outbox) -> None:
        box.publish(1, 2)
        first, second = deliveries.claim(using=box.database, limit=2).messages
        attempt = deliveries.Attempt(
            [first, second], lambda message: attempt.stop(), patience=timedelta(minutes=1)
        )

        attempt.run()

        assert (attempt.hangs, attempt.sent, list(attempt.left)) == (True, [], [second])
