"""Several callbacks at once, and others who are at work on the same order. On PostgreSQL, in this process."""

import time
from datetime import timedelta
from threading import Event
from types import SimpleNamespace

import psycopg
import pytest
from django.db import OperationalError, transaction
from django.utils import timezone

from orders.models import Order
from payments import notices, paying
from payments.exceptions import PaymentMismatch
from payments.models import Notice
from payments.paying import pay
from payments.providers.base import Charge
from payments.reconciling import reconcile
from tests.lab.races import Background, race

from .senders import Stripe, WeChat
from .shop import State, fates, nothing_is_stored, place, records, state

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE = 30
TRANSACTION = "4200000000202411040000000001"


@pytest.fixture
def slow(monkeypatch):
    """The handler sleeps 300 ms between what it looks up and what it changes."""
    settle = notices.services.settle_payment

    def settle_slowly(**kwargs):
        time.sleep(0.3)
        return settle(**kwargs)

    monkeypatch.setattr(notices.services, "settle_payment", settle_slowly)


@pytest.mark.usefixtures("slow")
class TestTwoAtOnce:
    def test_of_one_event_have_one_effect(self):
        """WEB-02"""
        place()
        answers = race([lambda: WeChat().send("01"), lambda: WeChat().send("02")])

        assert {answer.status_code for answer in answers} <= {204, 409}
        assert any(map(WeChat.is_ack, answers))
        assert all(answer.headers["Retry-After"] for answer in answers if answer.status_code == 409)
        assert WeChat.is_ack(WeChat().send("02"))
        assert state() == State(status="PAID", paid=3980, payments=(TRANSACTION,))
        assert (fates(), records()) == (["APPLIED"], 1)

    @pytest.mark.parametrize(("sender", "currency"), [(Stripe, "USD"), (WeChat, "CNY")])
    def test_of_one_payment_are_one_payment(self, sender, currency):
        """WEB-03"""
        place(currency=currency)
        answers = race([lambda: sender().send("01"), lambda: sender().send("03")])

        assert all(map(sender.is_ack, answers))
        assert (state().status, state().paid, len(state().payments)) == ("PAID", 3980, 1)
        assert sorted(fates()) == ["APPLIED", "NOTHING_NEW"]

    def test_that_pay_and_refund_end_as_refunded(self):
        """WEB-04"""
        place(currency="USD")
        answers = race([lambda: Stripe().send("01"), lambda: Stripe().send("05")])

        assert all(map(Stripe.is_ack, answers))
        assert (state().status, state().refunds, state().stock) == ("REFUNDED", (3980,), 100)

    def test_repeats_of_what_is_known_change_nothing(self):
        place(currency="USD")
        Stripe().send("01")
        answers = race([lambda: Stripe().send("02")] * 5)

        assert {answer.status_code for answer in answers} <= {200, 409}
        assert (state().paid, fates(), records()) == (3980, ["APPLIED"], 1)


class TestConflict:
    def test_is_run_again(self, monkeypatch):
        """A deadlock with somebody else's transaction: everything is rolled back, and taken once more."""
        place(currency="USD")
        settle, calls = notices.services.settle_payment, []

        def deadlock_first(**kwargs):
            calls.append(settle(**kwargs))
            if len(calls) == 1:
                raise OperationalError from psycopg.errors.DeadlockDetected()
            return calls[-1]

        monkeypatch.setattr(notices.services, "settle_payment", deadlock_first)
        assert Stripe.is_ack(Stripe().send("01"))
        assert calls == ["paid", "paid"]
        assert (state().status, state().payments, fates(), records()) == (
            "PAID",
            ("pi_T0001",),
            ["APPLIED"],
            1,
        )

    def test_is_run_again_from_the_same_start(self, monkeypatch):
        """What the first attempt found is not in the notice that the second one stores."""
        place(currency="USD")
        settle, log, seen = notices.services.settle_payment, notices._log, []

        def mismatch_first(**kwargs):
            if not seen:
                raise PaymentMismatch
            return settle(**kwargs)

        def deadlock_first(notice):
            seen.append(notice.fate)
            if len(seen) == 1:
                raise OperationalError from psycopg.errors.DeadlockDetected()
            log(notice)

        monkeypatch.setattr(notices.services, "settle_payment", mismatch_first)
        monkeypatch.setattr(notices, "_log", deadlock_first)
        assert Stripe.is_ack(Stripe().send("01"))
        assert seen == ["MISMATCHED", "APPLIED"]
        assert (Notice.objects.get().expected, state().status) == ("", "PAID")


class TestOrder:
    def test_that_is_not_committed_yet_is_paid_in_the_end(self):
        """WEB-05"""
        begun, told = Event(), Event()

        def create():
            with transaction.atomic():
                place(currency="USD")
                begun.set()
                assert told.wait(PATIENCE)

        creating = Background(create)
        assert begun.wait(PATIENCE)
        early = Stripe().send("01")
        told.set()
        creating.result()
        again = Stripe().send("01")

        assert Stripe.is_ack(early)
        assert Stripe.is_ack(again)
        assert state() == State()
        found = race([lambda: [finding.result for finding in reconcile()]] * 3)
        assert sorted(found) == [[], [], ["applied"]]
        assert (state().status, state().payments, fates()) == ("PAID", ("pi_T0001",), ["APPLIED"])

    def test_that_somebody_holds_is_answered_in_time(self):
        """Within the 5 seconds that a provider waits; it comes again."""
        place(currency="USD")
        held, released = Event(), Event()

        def hold():
            with transaction.atomic():
                Order.objects.select_for_update().get()
                held.set()
                assert released.wait(PATIENCE)

        holding = Background(hold)
        assert held.wait(PATIENCE)
        started = time.monotonic()
        answer = Stripe().send("01")
        took = time.monotonic() - started

        assert (answer.status_code, answer.content) == (409, b"operation_in_progress")
        assert took < 5
        assert nothing_is_stored()
        released.set()
        holding.result()
        assert Stripe.is_ack(Stripe().send("01"))
        assert state().status == "PAID"

    def test_whose_charge_is_still_running_is_paid_by_the_notice(self, monkeypatch):
        """The slow provider holds nothing that a callback needs."""
        place()
        asked, answered = Event(), Event()

        def charge(**kwargs):
            asked.set()
            assert answered.wait(PATIENCE)
            return Charge(payment_no=TRANSACTION, amount_minor=3980, currency="CNY", paid_at=timezone.now())

        monkeypatch.setattr(paying, "provider", lambda name: SimpleNamespace(charge=charge))
        paid = Background(lambda: pay(order_no="SO-2024-0001", method="wechat"))
        assert asked.wait(PATIENCE)
        started = time.monotonic()
        answer = WeChat().send("01")
        took = timedelta(seconds=time.monotonic() - started)
        answered.set()

        assert WeChat.is_ack(answer)
        assert took < timedelta(seconds=5)
        assert paid.result() == {"settled": "known"}
        assert state() == State(status="PAID", paid=3980, payments=(TRANSACTION,))

    def test_that_was_refunded_before_the_charge_is_answered_is_refunded(self, monkeypatch):
        """The notice of the refund waits for whoever settles the payment."""
        place()

        def charge(**kwargs):
            assert WeChat.is_ack(WeChat().send("04"))
            return Charge(payment_no=TRANSACTION, amount_minor=3980, currency="CNY", paid_at=timezone.now())

        monkeypatch.setattr(paying, "provider", lambda name: SimpleNamespace(charge=charge))
        pay(order_no="SO-2024-0001", method="wechat")

        assert (state().status, state().refunds, state().stock) == ("REFUNDED", (3980,), 100)
        assert fates() == ["APPLIED"]
