"""Messages of one key are sent in order."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event
from typing import Any

import pytest

from idempotency import deliveries
from idempotency.models import OutboxQuerySet
from tests.lab.operations import WITH_RIVALS, lab_db, on
from tests.lab.outbox import Broker, Outbox
from tests.lab.races import PATIENCE, Background, race
from tests.lab.relays import fail, relay_patiently
from tests.servers.private import wait_until

pytestmark = lab_db


@contextmanager
def pause_at(box: Outbox, *, number: int) -> Iterator[None]:
    """Have whoever looks for the first of a key stand still at this message, its query half done."""
    look = OutboxQuerySet.first_of_their_key
    pause = f"""IF(payload = '{{"number":{number}}}', GET_LOCK('paused', {PATIENCE}), 1)"""
    with box.connection.cursor() as cursor, pytest.MonkeyPatch.context() as patch:
        cursor.execute("SELECT GET_LOCK('paused', 0)")
        paused = lambda self: look(self).extra(where=[pause])  # noqa: E731, S610
        patch.setattr(OutboxQuerySet, "first_of_their_key", paused)
        try:
            yield
        finally:
            cursor.execute("SELECT RELEASE_LOCK('paused')")


def see_paused(box: Outbox) -> None:
    with box.connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User lock'")
        assert cursor.fetchone() == (1,)


class TestKey:
    def test_is_sent_one_after_the_other(self, box: Outbox, mail: Broker) -> None:
        box.publish(1, 2, 3, key="SO1")
        box.publish(4)

        assert box.relay().sent == 2
        assert mail.numbers == [1, 4]
        assert box.relay_all() == 2
        assert mail.numbers == [1, 4, 2, 3]

    def test_keeps_its_order_over_several_relays(self, box: Outbox, mail: Broker) -> None:
        for number in range(12):
            for key in ("SO1", "SO2", "SO3"):
                box.publish(number, key=key)

        race([partial(relay_patiently, box)] * 4)

        for key in ("SO1", "SO2", "SO3"):
            sent = [envelope.payload["number"] for envelope in mail.heard if envelope.key == key]
            assert sent == list(range(12))

    def test_is_its_bytes(self, box: Outbox, mail: Broker) -> None:
        keys = ["abc", "ABC", "abc ", "äbc", " "]
        for number, key in enumerate([*keys, *keys]):
            box.publish(number, key=key)

        assert box.relay().sent == len(keys)
        assert mail.numbers == [0, 1, 2, 3, 4]
        assert [box.messages.filter(key=key).count() for key in keys] == [2] * len(keys)

    @on("mariadb")
    def test_is_sent_in_order_when_two_come_while_a_relay_looks(self, box: Outbox) -> None:
        """It compares with what was there when it began, and finds what is committed since."""
        box.publish(0, key="SO0")
        box.publish(1)
        with pause_at(box, number=1), box.atomic():
            box.write(2, key="SO1")
            box.write(3, key="SO1")
            relay = Background(partial(deliveries.claim, using=box.database, limit=10))
            wait_until(partial(see_paused, box), alive=lambda: True)

        claimed = relay.result().messages
        assert [message.payload for message in claimed] == [f'{{"number":{number}}}' for number in (0, 1, 2)]

    def test_waits_for_the_one_that_another_relay_holds(self, box: Outbox, mail: Broker) -> None:
        box.publish(1, 2, key="SO1")
        claimed = deliveries.claim(using=box.database, limit=10)

        assert box.relay().claimed == 0
        assert [message.payload for message in claimed.messages] == ['{"number":1}']
        box.end_leases()

        assert (box.relay_all(), mail.numbers) == (2, [1, 2])

    def test_waits_for_the_one_that_failed(self, box: Outbox, mail: Broker) -> None:
        mail.before = fail(ValueError("not yet"), at={1})
        box.publish(1, 2, key="SO1")

        assert (box.relay_all(), mail.numbers) == (0, [])
        mail.before = lambda envelope: None
        box.make_due()

        assert (box.relay_all(), mail.numbers) == (2, [1, 2])

    @pytest.mark.parametrize(("verb", "heard"), [("requeue", [1, 2]), ("drop", [2])])
    def test_is_held_by_a_dead_letter_until_somebody_decides(
        self, box: Outbox, mail: Broker, settings: Any, verb: str, heard: list[int]
    ) -> None:
        settings.IDEMPOTENCY_OUTBOX_MAX_ATTEMPTS = 1
        mail.before = fail(ValueError("never"), at={1})
        box.publish(1, 2, key="SO1")
        box.relay_all()
        assert (box.states(), mail.numbers) == (["DEAD", "PENDING"], [])
        mail.before = lambda envelope: None

        assert getattr(box.messages, verb)() == 1
        box.relay_all()

        assert mail.numbers == heard

    @WITH_RIVALS
    def test_loses_none_that_is_committed_behind_a_later_one(self, box: Outbox, mail: Broker) -> None:
        """Two transactions without a lock have no order between them."""
        written, commit = Event(), Event()

        def slow() -> None:
            with box.atomic():
                box.write(1, key="SO1")
                written.set()
                assert commit.wait(PATIENCE)

        slowly = Background(slow)
        assert written.wait(PATIENCE)
        box.publish(2, key="SO1")
        box.relay_all()
        commit.set()
        slowly.result()

        box.relay_all()

        assert mail.numbers == [2, 1]

    @on("mariadb")
    def test_is_looked_up_by_itself_in_the_index(self, box: Outbox) -> None:
        box.publish(*range(300), key="SO1")
        first = box.messages.due().free().first_of_their_key()

        plan = first.order_by("due_at", "pk")[:100].explain()

        assert plan.count("U0 ref ") == 2
        assert plan.count("idempotency_outbox.key") == 2
