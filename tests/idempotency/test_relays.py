"""Several relays: each message is sent by one of them, in the order of its key, whoever dies or is late."""

import signal
from collections import Counter
from datetime import timedelta
from functools import partial
from threading import Event
from typing import Any
from uuid import uuid4

import pytest

from idempotency import deliveries
from idempotency.dialects import Later
from idempotency.exceptions import BrokerUnavailable
from idempotency.models import MessageState
from tests.lab.operations import WITH_RIVALS, lab_db
from tests.lab.outbox import KILLED_BY, Broker, Outbox
from tests.lab.races import PATIENCE, Background, race
from tests.lab.relays import effects, process, relay_patiently, relay_process

pytestmark = lab_db


class TestRivals:
    def test_share_the_messages(self, box: Outbox, mail: Broker) -> None:
        ids = box.publish(*range(200))

        results = race([partial(relay_patiently, box)] * 4)

        assert sum(results) == 200
        assert Counter(envelope.id for envelope in mail.heard) == Counter(ids)
        assert box.count(MessageState.SENT) == 200

    @WITH_RIVALS
    def test_wait_for_nobody_who_claims(self, box: Outbox, mail: Broker) -> None:
        box.publish(1, 2)
        with box.atomic():
            list(box.messages.select_for_update().filter(payload='{"number":1}'))
            assert Background(box.relay).result().sent == 1

        assert mail.numbers == [2]

    def test_never_send_what_is_leased(self, box: Outbox, mail: Broker) -> None:
        rivals: list[Any] = []
        mail.before = lambda envelope: rivals.append(Background(box.relay).result().claimed)
        box.publish(1, 2)

        box.relay()

        assert (mail.numbers, rivals) == ([1, 2], [0, 0])

    def test_pass_over_what_is_leased(self, box: Outbox, mail: Broker) -> None:
        box.publish(1, 2)
        deliveries.claim(using=box.database, limit=1)

        assert box.relay(batch_size=1).sent == 1
        assert mail.numbers == [2]

    def test_take_nothing_that_is_leased_or_not_due(self, box: Outbox) -> None:
        """The WHERE clause is the judge where no row can be locked."""
        box.publish(1, 2)
        first, second = box.messages.order_by("pk")
        box.messages.filter(pk=first.pk).lease(uuid4(), timedelta(minutes=1))
        box.messages.filter(pk=second.pk).update(due_at=Later(timedelta(minutes=1)))

        assert box.messages.lease(uuid4(), timedelta(minutes=1)) == 0


class TestLateRelay:
    def test_marks_nothing_once_a_successor_has_taken_over(self, box: Outbox, mail: Broker) -> None:
        paused, resume, working, finish = (Event() for _ in range(4))
        waits = iter([(paused, resume), (working, finish)])

        def pause(envelope: Any) -> None:
            reached, go_on = next(waits)
            reached.set()
            assert go_on.wait(PATIENCE)

        mail.before = pause
        box.publish(1)
        late = Background(box.relay)
        assert paused.wait(PATIENCE)
        box.end_leases()
        successor = Background(box.relay)
        assert working.wait(PATIENCE)
        token = box.messages.get().token

        resume.set()
        assert late.result().sent == 0
        assert (box.states(), box.messages.get().token) == (["PENDING"], token)
        finish.set()

        assert successor.result().sent == 1
        assert (box.states(), len({envelope.id for envelope in mail.heard})) == (["SENT"], 1)

    @pytest.mark.parametrize("error", [ValueError("mine"), BrokerUnavailable("away")])
    def test_fails_nothing_that_its_successor_has_sent(
        self, box: Outbox, mail: Broker, error: Exception
    ) -> None:
        def taken_over(envelope: Any) -> None:
            box.end_leases()
            mail.before = lambda envelope: None
            assert Background(box.relay).result().sent == 1
            raise error

        mail.before = taken_over
        box.publish(1)

        box.relay()

        message = box.messages.get()
        assert (message.state, message.attempts, message.error) == ("SENT", 0, "")


class TestProcesses:
    """Relays that are processes of their own, on the database of the test."""

    def test_share_the_messages(self, box: Outbox) -> None:
        ids = box.publish(*range(200))

        relays = [relay_process(box, "--batch-size", "7") for _ in range(3)]

        assert [relay.wait(PATIENCE) for relay in relays] == [0, 0, 0]
        assert Counter(effects(box)) == Counter(str(message_id) for message_id in ids)
        assert box.count(MessageState.SENT) == 200

    @pytest.mark.parametrize(
        ("moment", "changed", "states"), [("before", [], []), ("after", ["changed"], ["PENDING"])]
    )
    def test_killed_around_the_commit_leave_change_and_message_or_neither(
        self, box: Outbox, moment: str, changed: list[str], states: list[str]
    ) -> None:
        killed = process(box, "-m", "tests.lab.publishing", moment)
        assert killed.wait(PATIENCE) == -signal.SIGKILL
        assert (effects(box), box.states()) == (changed, states)

        assert box.relay_all() == len(states)

    def test_killed_between_sending_and_marking_send_again_with_the_same_id(
        self, box: Outbox, settings: Any
    ) -> None:
        settings.IDEMPOTENCY_OUTBOX_ROUTES = {"lab.deadly": []}
        (message_id,) = box.publish(1, topic="lab.deadly")
        killed = relay_process(box, env={KILLED_BY: "lab.deadly"})
        assert killed.wait(PATIENCE) == -signal.SIGKILL
        assert (effects(box), box.states()) == ([str(message_id)], ["PENDING"])
        assert relay_process(box).wait(PATIENCE) == 0
        assert len(effects(box)) == 1  # the dead one's lease has not ended
        box.end_leases()

        assert relay_process(box).wait(PATIENCE) == 0

        assert effects(box) == [str(message_id)] * 2
        assert box.states() == ["SENT"]
