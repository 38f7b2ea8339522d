"""One attempt right after the commit, which holds nobody for long."""

import logging
from threading import Event
from time import monotonic
from typing import Any

import pytest

from idempotency import outbox
from idempotency.exceptions import BrokerUnavailable
from tests.lab.operations import lab_db
from tests.lab.outbox import Broker, Outbox
from tests.lab.races import PATIENCE, Background

pytestmark = lab_db


@pytest.fixture
def hasty(box: Outbox, settings: Any) -> Outbox:
    """Each commit is followed by one attempt."""
    settings.IDEMPOTENCY_OUTBOX_RELAY_ON_COMMIT = True
    return box


class TestOnCommit:
    def test_is_sent_at_once(self, hasty: Outbox, mail: Broker) -> None:
        ids = hasty.publish(1, 2, 3)

        assert [envelope.id for envelope in mail.heard] == ids
        assert hasty.states() == ["SENT"] * 3

    def test_is_not_sent_before(self, hasty: Outbox, mail: Broker) -> None:
        with hasty.atomic():
            hasty.write(1)
            assert Background(hasty.relay_all).result() == 0
            assert mail.heard == []

        assert mail.numbers == [1]

    def test_is_left_to_the_relays_where_the_setting_says_so(self, box: Outbox, mail: Broker) -> None:
        box.publish(1)

        assert (mail.heard, box.states()) == ([], ["PENDING"])

    def test_keeps_the_order_of_a_key(self, hasty: Outbox, mail: Broker) -> None:
        hasty.publish(1, 2, 3, key="SO1")

        assert (mail.numbers, hasty.states()) == ([1, 2, 3], ["SENT"] * 3)

    def test_leaves_other_transactions_messages_alone(
        self, hasty: Outbox, mail: Broker, settings: Any
    ) -> None:
        settings.IDEMPOTENCY_OUTBOX_RELAY_ON_COMMIT = False
        hasty.publish(1)
        settings.IDEMPOTENCY_OUTBOX_RELAY_ON_COMMIT = True

        hasty.publish(2)

        assert (mail.numbers, hasty.states()) == ([2], ["PENDING", "SENT"])

    def test_is_one_attempt_for_a_transaction(self, hasty: Outbox) -> None:
        with hasty.atomic():
            for number in range(5):
                with hasty.atomic():
                    hasty.write(number)
            assert len(hasty.connection.run_on_commit) == 1

    def test_forgets_what_a_savepoint_rolled_back(self, hasty: Outbox, mail: Broker) -> None:
        with hasty.atomic():
            with hasty.rolled_back():
                hasty.write(1)
            hasty.write(2)
            with hasty.rolled_back():
                hasty.write(3)

        assert (mail.numbers, hasty.states()) == ([2], ["SENT"])

    def test_sends_what_follows_in_an_outer_savepoint(self, hasty: Outbox, mail: Broker) -> None:
        """The attempt was registered in an inner one, and is not taken away with a later one."""
        with hasty.atomic(), hasty.atomic():
            with hasty.atomic():
                hasty.write(1)
            hasty.write(2)
            with hasty.rolled_back():
                pass

        assert mail.numbers == [1, 2]

    def test_sends_nothing_of_a_transaction_rolled_back(self, hasty: Outbox, mail: Broker) -> None:
        with hasty.rolled_back():
            hasty.write(1)
        hasty.publish(2)

        assert (mail.numbers, hasty.states()) == ([2], ["SENT"])


class TestTroubleOnCommit:
    def test_of_the_message_is_counted(self, hasty: Outbox, mail: Broker) -> None:
        mail.before = lambda envelope: 1 / envelope.payload["number"]

        hasty.publish(1, 0, 2)

        assert mail.numbers == [1, 2]
        assert list(hasty.messages.order_by("pk").values_list("state", "attempts")) == [
            ("SENT", 0),
            ("PENDING", 1),
            ("SENT", 0),
        ]

    def test_of_the_broker_leaves_the_rest_to_a_relay(self, hasty: Outbox, mail: Broker) -> None:
        tried = refuse(mail)

        hasty.publish(1, 2, 3)
        hasty.publish(4)

        assert tried == [1]  # and for a while the process asks no more
        assert hasty.states() == ["PENDING"] * 4
        assert set(hasty.messages.values_list("attempts", "token")) == {(0, None)}

    def test_of_the_settings_is_only_logged(
        self, hasty: Outbox, settings: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        settings.IDEMPOTENCY_OUTBOX_SENDER = "tests.lab.outbox.nobody"
        with caplog.at_level(logging.ERROR):
            hasty.publish(1)

        assert hasty.states() == ["PENDING"]
        assert "IDEMPOTENCY_OUTBOX_SENDER" in caplog.text

    def test_of_a_broker_that_hangs_holds_the_caller_for_a_second(self, hasty: Outbox, mail: Broker) -> None:
        answer = Event()
        mail.before = lambda envelope: answer.wait(PATIENCE)
        began = monotonic()
        hasty.publish(1, 2)
        held = monotonic() - began
        assert 0.9 < held < 3
        assert hasty.states() == ["PENDING"] * 2
        answer.set()

        assert hasty.relay_all() == 1  # the other one has its lease
        hasty.end_leases()
        assert hasty.relay_all() == 1
        assert sorted(set(mail.numbers)) == [1, 2]

    def test_of_hanging_threads_holds_nobody_else(
        self, hasty: Outbox, mail: Broker, monkeypatch: Any
    ) -> None:
        answer = Event()
        monkeypatch.setattr(outbox, "HANDS", 0)
        monkeypatch.setattr(outbox._hands, "_free", NoHands())
        mail.before = lambda envelope: answer.wait(PATIENCE)
        began = monotonic()

        hasty.publish(1)

        assert monotonic() - began < 0.9
        assert (hasty.states(), hasty.messages.get().token) == (["PENDING"], None)

    def test_of_threads_that_cannot_be_started_leaves_all_to_a_relay(
        self, hasty: Outbox, mail: Broker, monkeypatch: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        def start(thread: Any) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
            patch.setattr(outbox.Thread, "start", start)
            for number in range(outbox.HANDS + 1):
                hasty.publish(number)

        assert hasty.states() == ["PENDING"] * (outbox.HANDS + 1)
        assert set(hasty.messages.values_list("attempts", "token", "leased_until")) == {(0, None, None)}
        assert caplog.text.count("no thread could be started") == outbox.HANDS + 1
        hasty.publish(99)
        assert mail.numbers == [99]


class NoHands:
    """A semaphore whose hands are all taken."""

    def acquire(self, *, blocking: bool) -> bool:
        assert not blocking
        return False


def refuse(mail: Broker) -> list[int]:
    """Have the broker be away; return the numbers of the messages that met it."""
    tried: list[int] = []

    def away(envelope: Any) -> None:
        tried.append(envelope.payload["number"])
        raise BrokerUnavailable("nobody listens")

    mail.before = away
    return tried
