"""Gate and queue agree with the database again, whatever was lost, and also while everybody buys."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.utils import timezone

from flashsales import gate, queueing, tasks
from flashsales.gate import Verdict
from flashsales.models import FlashSale, Status, Ticket
from flashsales.reconciling import Finding, reconcile, reload
from idempotency.models import OutboxMessage
from orders.models import Order
from tests.flashsales.selling import (
    HOUR,
    LONG_AGO,
    SKU,
    another_sale,
    buy,
    closing,
    end,
    left,
    open_sale,
    user_id,
    work,
)
from tests.shopping import at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("gated")]


def admit(name, mark="aa"):
    return gate.admit(sku=SKU, user_id=user_id(name), mark=mark)


def verdict(name, mark="aa"):
    return admit(name, mark).verdict


def run():
    return list(reconcile(now=timezone.now()))


@pytest.fixture
def impatient(settings):
    settings.FLASH_ADMISSION_PATIENCE = timedelta(0)


class TestReconcile:
    def test_loads_what_was_forgotten(self, gated):
        open_sale(units=3)
        buy("alice", "k")
        gated.empty()
        assert run() == [Finding(sku=SKU, units=3, sold=1, before=None, after=2)]
        assert left() == 2
        assert verdict("alice") is Verdict.ALREADY_BOUGHT
        assert buy("alice", "k") == Ticket.objects.get()

    @pytest.mark.usefixtures("impatient")
    def test_returns_the_unit_of_a_process_that_died(self):
        open_sale(units=1)
        admit("alice")
        assert verdict("bob") is Verdict.SOLD_OUT
        assert run() == [Finding(sku=SKU, units=1, sold=0, before=0, after=1)]
        assert verdict("bob") is Verdict.ADMITTED

    def test_keeps_the_unit_of_a_process_that_may_be_at_work(self):
        open_sale(units=1)
        admitted = admit("alice")
        assert run() == [Finding(sku=SKU, units=1, sold=0, before=0, after=0)]
        gate.give_back(admitted)
        assert left() == 1

    @pytest.mark.usefixtures("impatient")
    def test_counts_a_ticket_that_was_never_told(self, gated):
        open_sale(units=2)
        with gated.away():
            buy("alice")
        run()
        assert (left(), verdict("alice")) == (1, Verdict.ALREADY_BOUGHT)

    @pytest.mark.usefixtures("impatient")
    def test_counts_a_ticket_that_was_told_to_be_at_work(self, gated):
        open_sale(units=2)
        ticket = buy("alice", "k")
        with gated.client as client:
            client.hset(gate._name(SKU), f"u:{ticket.user_id}", f"p:{LONG_AGO}:{ticket.mark}:bb")
        run()
        assert (left(), verdict("alice")) == (1, Verdict.ALREADY_BOUGHT)

    def test_knows_better_than_an_attempt_that_seems_to_be_at_work(self, gated):
        open_sale(units=2)
        ticket = buy("alice", "k")
        with gated.client as client:
            seconds, microseconds = client.time()
            entry = f"p:{seconds * 1_000_000 + microseconds}:{ticket.mark}:bb"
            client.hset(gate._name(SKU), f"u:{ticket.user_id}", entry)
        run()
        assert (left(), verdict("alice")) == (1, Verdict.ALREADY_BOUGHT)

    @pytest.mark.parametrize("wrong", [-5, 0, 99])
    def test_corrects_a_wrong_number(self, gated, wrong):
        open_sale(units=3)
        buy("alice")
        with gated.client as client:
            client.hset(gate._name(SKU), "left", wrong)
        assert run() == [Finding(sku=SKU, units=3, sold=1, before=wrong, after=2)]

    def test_forgets_a_ticket_that_is_not_there(self, gated):
        open_sale(units=3)
        with gated.client as client:
            client.hset(gate._name(SKU), f"u:{user_id('alice')}", f"h:{LONG_AGO}:aa:")
        run()
        assert (left(), verdict("alice")) == (3, Verdict.ADMITTED)

    def test_changes_nothing_when_run_twice(self):
        open_sale(units=3, stock=1)
        work(buy("alice").number)
        work(buy("bob").number)
        admit("carol")
        first, second = run(), run()
        assert first == second == [Finding(sku=SKU, units=3, sold=1, before=1, after=1)]
        assert verdict("bob") is Verdict.SOLD_OUT

    def test_is_quiet_without_a_gate(self, settings):
        settings.FLASH_GATE_URL = ""
        open_sale(units=3)
        assert run() == [Finding(sku=SKU, units=3, sold=0, before=None, after=None)]

    def test_leaves_ended_sales_alone_and_the_next_one_for_later(self):
        end(open_sale(units=3))
        another_sale(units=5, begins_in=HOUR * 0)
        another_sale(units=7, begins_in=HOUR * 4)
        assert run() == [Finding(sku=SKU, units=5, sold=0, before=5, after=5)]


class TestWhileOthersBuy:
    """Each stands between the look into the database and the load."""

    def test_who_commits_is_not_forgotten(self):
        sale = open_sale(units=3)
        since = gate.begin(sale)
        marks = list(Ticket.objects.filter(sale=sale).marks())
        buy("alice")
        assert gate.load(sale, since=since, marks=marks) == 2
        assert verdict("alice") is Verdict.ALREADY_BOUGHT

    def test_who_commits_while_the_gate_is_missing_is_not_forgotten(self, gated):
        sale = open_sale(units=3)
        gated.empty()
        since = gate.begin(sale)
        gate.may_refresh(SKU)
        marks = list(Ticket.objects.filter(sale=sale).marks())
        buy("alice")
        assert (left(), gate.load(sale, since=since, marks=marks)) == (None, 2)
        assert verdict("alice") is Verdict.ALREADY_BOUGHT

    @pytest.mark.usefixtures("impatient")
    def test_who_is_let_in_is_not_forgotten(self):
        sale = open_sale(units=3)
        since = gate.begin(sale)
        admitted = admit("alice")
        assert gate.load(sale, since=since, marks=[]) == 2
        gate.give_back(admitted)
        assert left() == 3

    def test_whose_ticket_comes_to_nothing_does_not_count(self):
        sale = open_sale(units=3, stock=0)
        ticket = buy("alice")
        since = gate.begin(sale)
        marks = list(Ticket.objects.filter(sale=sale).marks())
        work(ticket.number)
        assert gate.load(sale, since=since, marks=marks) == 3
        assert verdict("alice") is Verdict.SOLD_OUT

    def test_load_of_a_sale_that_has_another_after_it_changes_nothing(self):
        first = open_sale(units=3)
        since = gate.begin(first)
        end(first)
        another_sale(units=5, begins_in=HOUR * 0)
        assert gate.load(first, since=since, marks=[]) is None
        assert left() == 5

    def test_many_at_once_agree_with_the_database(self):
        sale = open_sale(units=20)
        names = [f"buyer-{number}" for number in range(30)]
        for name in names:
            user_id(name)

        def act(number):
            if number % 4 == 0:
                return [reload(sale) for _ in range(10)]
            for name in names[number % 3 :: 3]:
                try:
                    buy(name, f"key-{number}")
                except Exception:  # noqa: BLE001, S112  refused: sold out, or bought by a rival
                    continue
            return None

        at_once(8, closing(act))
        sold = FlashSale.objects.get().sold
        assert sold == Ticket.objects.count() == 20
        assert reload(sale) == left() == 0


class TestLateTickets:
    @pytest.fixture(autouse=True)
    def impatient_queue(self, settings):
        settings.FLASH_QUEUE_PATIENCE = timedelta(minutes=5)

    def late(self, name="alice"):
        ticket = buy(name)
        long_ago = timezone.now() - timedelta(minutes=6)
        Ticket.objects.filter(pk=ticket.pk).update(queued_at=long_ago)
        return ticket

    def test_are_announced_again_once_in_a_while(self):
        open_sale()
        ticket = self.late()
        assert [queueing.announce_late(now=timezone.now()) for _ in range(2)] == [1, 0]
        messages = OutboxMessage.objects.order_by("pk")
        assert [message.payload for message in messages] == [f'{{"ticket":"{ticket.number}"}}'] * 2

    def test_make_one_order_of_two_messages(self):
        open_sale()
        self.late()
        queueing.announce_late(now=timezone.now())
        assert [work().status for _ in OutboxMessage.objects.all()] == [Status.CREATED] * 2
        assert Order.objects.count() == 1

    def test_are_announced_by_one_of_many_who_look_at_once(self):
        open_sale()
        self.late()
        announced = at_once(6, closing(lambda _: queueing.announce_late(now=timezone.now())))
        assert sum(announced) == 1
        assert OutboxMessage.objects.count() == 2

    def test_are_left_alone_once_they_have_their_order(self):
        open_sale()
        work(self.late().number)
        assert queueing.announce_late(now=timezone.now()) == 0
        assert OutboxMessage.objects.count() == 1

    def test_that_are_young_are_left_alone(self):
        open_sale()
        buy()
        assert queueing.announce_late(now=timezone.now()) == 0
        assert OutboxMessage.objects.count() == 1


class TestDoors:
    def test_command_tells_what_it_found(self, gated):
        open_sale(units=3)
        buy()
        gated.empty()
        out = StringIO()
        call_command("reconcile_flash_sales", stdout=out)
        assert out.getvalue().splitlines() == [
            "TEA-100: 1 of 3 sold; left at the gate None, now 2",
            "0 announced again",
        ]

    def test_task_does_the_same(self, gated):
        open_sale(units=3)
        gated.empty()
        tasks.reconcile()
        assert left() == 3
