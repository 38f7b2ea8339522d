"""The relay's process: it ends when it is told to, and survives what goes away."""

import logging
import signal
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from idempotency import deliveries
from idempotency.dialects import Later
from idempotency.exceptions import BrokerUnavailable
from idempotency.management.commands.idempotency_relay import Loop
from tests.lab.operations import WITH_RIVALS, lab_db
from tests.lab.outbox import Broker, Outbox
from tests.lab.races import PATIENCE, Background
from tests.lab.relays import effects, fail, relay_process
from tests.servers.private import wait_until

pytestmark = lab_db
TICK = timedelta(milliseconds=20)


def command(box: Outbox, *arguments: str) -> str:
    output = StringIO()
    call_command("idempotency_relay", *arguments, "--database", box.database, stdout=output)
    return output.getvalue()


class TestOnce:
    def test_sends_until_nothing_is_due(self, box: Outbox, mail: Broker) -> None:
        box.publish(*range(5))
        box.publish(5, 6, key="SO1")

        assert command(box, "--once", "--batch-size", "2") == "7 sent.\n"
        assert box.states() == ["SENT"] * 7
        assert command(box, "--once") == "0 sent.\n"

    def test_fails_where_the_broker_is_away(self, box: Outbox, mail: Broker) -> None:
        mail.before = fail(BrokerUnavailable("away"), at={2})
        box.publish(1, 2, 3)

        with pytest.raises(CommandError, match="broker cannot be reached; 1 sent before"):
            command(box, "--once")

        assert box.states() == ["SENT", "PENDING", "PENDING"]

    @pytest.mark.parametrize(
        ("option", "value"), [("--batch-size", "0"), ("--batch-size", "1001"), ("--interval", "0")]
    )
    def test_refuses_what_makes_no_sense(self, box: Outbox, option: str, value: str) -> None:
        with pytest.raises(CommandError, match=option):
            command(box, "--once", option, value)


class TestStatus:
    def test_tells_what_is_left(self, box: Outbox) -> None:
        assert command(box, "--status") == "0 pending, 0 due, 0 dead; none is due.\n"
        box.publish(1, 2)
        box.messages.update(due_at=Later(timedelta(minutes=-1)))

        output = command(box, "--status")

        assert output.startswith("2 pending, 2 due, 0 dead; the oldest due for 6")

    def test_fails_where_messages_wait_too_long(self, box: Outbox) -> None:
        box.publish(1)
        box.messages.update(due_at=Later(timedelta(minutes=-1)))

        with pytest.raises(CommandError, match="wait too long") as error:
            command(box, "--status", "--max-age", "30")

        assert error.value.returncode == 1

    def test_fails_where_letters_are_dead(self, box: Outbox, mail: Broker, settings: Any) -> None:
        settings.IDEMPOTENCY_OUTBOX_MAX_ATTEMPTS = 1
        mail.before = fail(ValueError("never"))
        box.publish(1)
        box.relay()

        with pytest.raises(CommandError, match="requeue or drop"):
            command(box, "--status")


class TestLoop:
    """In a thread of the test, on its connection of its own."""

    def test_finishes_its_batch_when_it_is_told_to_end(self, box: Outbox, mail: Broker) -> None:
        box.publish(1, 2, 3)
        with Loop(box.database, 2, TICK) as loop:
            mail.before = lambda envelope: loop.stop()
            Background(loop.run).result()

        assert (mail.numbers, box.states()) == ([1, 2], ["SENT", "SENT", "PENDING"])

    def test_waits_for_new_messages(self, box: Outbox, mail: Broker) -> None:
        with Loop(box.database, 10, TICK) as loop:
            running = Background(loop.run)
            box.publish(1)
            wait_for(lambda: mail.numbers == [1])
            box.publish(2)
            wait_for(lambda: box.states() == ["SENT", "SENT"])
            loop.stop()

            assert running.result() is None

    def test_says_once_that_the_broker_is_away_and_once_that_it_is_back(
        self, box: Outbox, mail: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(deliveries, "BROKER_PAUSE", timedelta(0))
        tries: list[int] = []

        def away(envelope: Any) -> None:
            tries.append(1)
            if len(tries) < 5:
                raise BrokerUnavailable("away")

        mail.before = away
        box.publish(1, 2)
        with Loop(box.database, 10, TICK) as loop, caplog.at_level(logging.WARNING, "idempotency"):
            running = Background(loop.run)
            wait_for(lambda: box.states() == ["SENT"] * 2)
            loop.stop()
            running.result()

        assert [record.getMessage() for record in caplog.records] == [
            "the outbox cannot reach its broker; its messages wait",
            "the outbox reaches its broker again",
        ]

    @WITH_RIVALS
    def test_survives_a_connection_that_breaks_between_sending_and_marking(
        self, box: Outbox, mail: Broker, caplog: pytest.LogCaptureFixture
    ) -> None:
        def cut_off(envelope: Any) -> None:
            mail.before = lambda envelope: None
            cut_connection(box)

        mail.before = cut_off
        (message_id,) = box.publish(1)
        with Loop(box.database, 10, TICK) as loop, caplog.at_level(logging.WARNING, "idempotency"):
            running = Background(loop.run)
            wait_for(lambda: "reaches its database again" in caplog.text)
            box.end_leases()
            wait_for(lambda: box.states() == ["SENT"])
            loop.stop()
            running.result()

        assert [envelope.id for envelope in mail.heard] == [message_id] * 2
        assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]


class TestProcess:
    @pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
    def test_ends_in_order_on_a_signal(self, box: Outbox, end: signal.Signals) -> None:
        relay = relay_process(box, "--interval", "0.1", once=False)
        (message_id,) = box.publish(1)
        wait_for(lambda: box.states() == ["SENT"])

        relay.send_signal(end)

        assert relay.wait(PATIENCE) == 0
        assert effects(box) == [str(message_id)]


def wait_for(condition: Any) -> None:
    def probe() -> None:
        assert condition()

    wait_until(probe, alive=lambda: True)


def cut_connection(box: Outbox) -> None:
    """End this thread's connection from outside."""
    with box.connection.cursor() as cursor:
        is_mysql = box.connection.vendor == "mysql"
        cursor.execute("SELECT connection_id()" if is_mysql else "SELECT pg_backend_pid()")
        number = cursor.fetchone()[0]

    def cut() -> None:
        with connections[box.database].cursor() as cursor:
            cursor.execute(f"KILL {number}" if is_mysql else f"SELECT pg_terminate_backend({number})")

    assert Background(cut).result() is None
