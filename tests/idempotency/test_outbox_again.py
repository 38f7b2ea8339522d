"""After a broker lost messages they are sent again from the outbox, with the ids that consumers know."""

from idempotency.models import MessageState
from tests.lab.operations import lab_db
from tests.lab.outbox import Broker, Outbox

pytestmark = lab_db


class TestSendAgain:
    def test_sends_with_the_same_ids(self, box: Outbox, mail: Broker) -> None:
        ids = box.publish(1, 2)
        box.relay_all()

        assert box.messages.send_again() == 2
        assert box.relay_all() == 2
        assert [envelope.id for envelope in mail.heard] == ids * 2
        assert box.count(MessageState.SENT) == 2

    def test_leaves_alone_what_was_not_sent(self, box: Outbox, mail: Broker) -> None:
        box.publish(1)
        dead, dropped = box.publish(2, 3)
        box.messages.filter(message_id=dead).mark_dead("no such phone")
        box.messages.filter(message_id=dropped).mark_dead("no such phone")
        box.messages.filter(message_id=dropped).drop()
        before = box.states()

        assert box.messages.send_again() == 0
        assert box.states() == before
