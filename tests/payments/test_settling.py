"""One charge, reported through several doors: by the answer to pay, by notices, by the reconciler."""

from datetime import UTC, datetime

import pytest

from orders.models import Order, Status
from payments.exceptions import (
    PaymentMismatch,
    RefundExceedsPayment,
    RefundMismatch,
    RefundNotPossible,
)
from payments.models import Payment, PaymentStatus, Refund
from payments.services import (
    Settled,
    fail_payment,
    settle_payment,
    settle_refund,
    settle_refunded_total,
    settle_return,
    undo_refund,
)
from tests.shopping import on_hand, order, sell, shopper

pytestmark = [pytest.mark.django_db, pytest.mark.urls("config.urls")]

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _tea():
    sell()


@pytest.fixture
def alice():
    return shopper("alice")


@pytest.fixture
def bought(alice):
    """A pending order of 39.80."""
    return Order.objects.get(order_no=order(alice, ("TEA-100", 2)).json()["data"]["orderId"])


def settle(order, number="T1", **told):
    asked = {"provider": "alipay", "amount_minor": 3980, "currency": "CNY", "paid_at": NOON, **told}
    return settle_payment(order=order, provider_payment_no=number, **asked)


def begun(order, **members):
    members = {"provider": "alipay", "provider_key": "K1", **members}
    return Payment.objects.create(order=order, amount_minor=3980, currency="CNY", created_at=NOON, **members)


def payments():
    return list(Payment.objects.order_by("pk").values_list("provider_payment_no", "status"))


class TestRunningTotal:
    """A provider tells how much it has given back so far, what was given back at its own desk included."""

    def test_waits_for_a_refund_of_ours_that_is_not_decided(self, bought):
        settle(bought)
        ours = Refund.objects.create(
            order=bought, refund_no="R1", amount_minor=1000, currency="CNY", created_at=NOON
        )
        Order.objects.filter(pk=bought.pk).reserve_refund(amount_minor=1000)

        with pytest.raises(RefundNotPossible):
            settle_refunded_total(order=bought, total_minor=500, refund_no="desk", now=NOON)
        assert list(Refund.objects.values_list("refund_no", flat=True)) == ["R1"]

        undo_refund(refund=ours)
        assert settle_refunded_total(order=bought, total_minor=500, refund_no="desk", now=NOON)
        bought.refresh_from_db()
        assert bought.refunded_minor == 500


def book(order, number="R1", amount_minor=1000):
    return settle_refund(
        order=order, refund_no=number, amount_minor=amount_minor, provider_refund_no=None, now=NOON
    )


class TestCharge:
    def test_pays_the_order_once(self, bought):
        """PAY-10"""
        assert [settle(bought) for _ in range(3)] == [Settled.PAID, Settled.KNOWN, Settled.KNOWN]
        assert payments() == [("T1", PaymentStatus.SUCCEEDED)]
        bought.refresh_from_db()
        assert (bought.status, bought.paid_at) == (Status.PAID, NOON)

    def test_of_another_door_keeps_pay_from_asking_the_provider(self, alice, bought, settings):
        """PAY-03"""
        settle(bought)
        settings.PAYMENTS_PROVIDERS = {}
        answer = alice.post(f"/api/orders/{bought.order_no}/pay", {"method": "wechat"})
        assert (answer.status_code, answer.json()["data"]["isDuplicate"]) == (200, True)
        assert payments() == [("T1", PaymentStatus.SUCCEEDED)]

    def test_that_a_notice_tells_first_is_the_one_that_was_asked_for(self, bought):
        begun(bought)
        assert settle(bought) is Settled.PAID
        assert settle(bought, provider_key="K1") is Settled.KNOWN
        assert Payment.objects.values_list("provider_key", "provider_payment_no").get() == ("K1", "T1")

    def test_whose_number_has_a_row_already_leaves_one_row(self, bought):
        fail_payment(order=bought, provider="alipay", provider_payment_no="T1")
        begun(bought)
        assert settle(bought, provider_key="K1") is Settled.PAID
        assert payments() == [("T1", PaymentStatus.SUCCEEDED)]

    def test_of_a_second_number_is_to_be_given_back(self, bought):
        begun(bought)
        assert settle(bought, "T1") is Settled.PAID
        assert settle(bought, "T2", provider_key="K1") is Settled.REFUND_DUE
        assert payments() == [("T1", PaymentStatus.SUCCEEDED), ("T2", PaymentStatus.REFUND_DUE)]
        assert Order.objects.get().status == Status.PAID

    @pytest.mark.parametrize("status", [Status.CANCELLED, Status.SHIPPED, Status.REFUNDED])
    def test_of_an_order_that_is_not_payable_changes_it_in_nothing(self, bought, status):
        Order.objects.update(status=status)
        assert [settle(bought) for _ in range(2)] == [Settled.REFUND_DUE, Settled.KNOWN]
        assert Order.objects.get().status == status
        assert payments() == [("T1", PaymentStatus.REFUND_DUE)]

    @pytest.mark.parametrize(
        "told", [{"amount_minor": 3979}, {"amount_minor": 398000}, {"currency": "USD"}, {"currency": "cny"}]
    )
    def test_of_another_amount_or_currency_changes_nothing(self, bought, told):
        with pytest.raises(PaymentMismatch):
            settle(bought, **told)
        assert (payments(), Order.objects.get().status) == ([], Status.PENDING)

    def test_of_another_orders_number_changes_nothing(self, alice, bought):
        settle(bought)
        other = Order.objects.get(order_no=order(alice, ("TEA-100", 2)).json()["data"]["orderId"])
        with pytest.raises(PaymentMismatch):
            settle(other)
        other.refresh_from_db()
        assert (payments(), other.status) == ([("T1", PaymentStatus.SUCCEEDED)], Status.PENDING)

    def test_is_another_one_at_another_provider(self, bought):
        assert settle(bought, provider="alipay") is Settled.PAID
        assert settle(bought, provider="wechat") is Settled.REFUND_DUE

    def test_that_is_given_back_is_booked_once(self, bought):
        Order.objects.update(status=Status.CANCELLED)
        settle(bought)
        assert [settle_return(payment=Payment.objects.get(), now=NOON) for _ in range(2)] == [True, False]
        assert settle(bought) is Settled.KNOWN
        assert payments() == [("T1", PaymentStatus.REFUNDED)]


class TestFailure:
    def test_is_noted_and_forgotten_when_the_number_succeeds(self, bought):
        told = {"order": bought, "provider": "alipay", "provider_payment_no": "T1"}
        assert [fail_payment(**told) for _ in range(2)] == [True, False]
        assert payments() == [("T1", PaymentStatus.FAILED)]
        assert settle(bought) is Settled.PAID
        assert fail_payment(**told) is False
        assert payments() == [("T1", PaymentStatus.SUCCEEDED)]


class TestRefund:
    def test_is_booked_once_by_its_number(self, bought):
        settle(bought)
        assert [book(bought) for _ in range(2)] == [True, False]
        assert Order.objects.get().refunded_minor == 1000

    def test_by_a_running_total_books_what_is_new(self, bought):
        settle(bought)
        totals = [("E1", 1000), ("E2", 2500), ("E3", 2500), ("E4", 1000), ("E5", 3980)]
        booked = [
            settle_refunded_total(order=bought, total_minor=total, refund_no=number, now=NOON)
            for number, total in totals
        ]
        assert booked == [True, True, False, False, True]
        assert list(Refund.objects.order_by("pk").values_list("amount_minor", flat=True)) == [
            1000,
            1500,
            1480,
        ]
        assert (Order.objects.get().status, on_hand()) == (Status.REFUNDED, 100)

    @pytest.mark.parametrize(
        "booking",
        [book, lambda order: settle_refunded_total(order=order, total_minor=1000, refund_no="E1", now=NOON)],
    )
    def test_of_an_order_that_is_not_paid_waits(self, bought, booking):
        with pytest.raises(RefundNotPossible):
            booking(bought)
        assert (Refund.objects.count(), Order.objects.get().refunded_minor) == (0, 0)

    def test_of_more_than_is_left_changes_nothing(self, bought):
        settle(bought)
        with pytest.raises(RefundExceedsPayment):
            book(bought, amount_minor=3981)
        assert (Refund.objects.count(), Order.objects.get().refunded_minor) == (0, 0)

    def test_of_a_known_number_with_another_amount_changes_nothing(self, bought):
        settle(bought)
        book(bought)
        with pytest.raises(RefundMismatch):
            book(bought, amount_minor=1001)
        assert Order.objects.get().refunded_minor == 1000
