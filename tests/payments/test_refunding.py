"""``POST /api/orders/{orderId}/refunds``, at the sandbox over real HTTP."""

import pytest
from django.db import IntegrityError, transaction

from idempotency.models import IdempotencyRecord
from orders.models import Order, Status
from payments.models import Payment, Refund, RefundStatus
from payments.providers import provider
from tests.servers.private import free_port
from tests.shopping import on_hand, order, sell, shopper

pytestmark = [pytest.mark.django_db, pytest.mark.urls("config.urls")]


@pytest.fixture(autouse=True)
def _shop(shop):
    sell()


@pytest.fixture
def alice():
    return shopper("alice")


@pytest.fixture
def order_no(alice):
    """A paid order of 39.80."""
    order_no = order(alice, ("TEA-100", 2)).json()["data"]["orderId"]
    assert alice.post(f"/api/orders/{order_no}/pay", {"method": "wechat"}).status_code == 200
    return order_no


NO_STRINGS = [5, 5.0, None, [], True]


def refund(client, order_no, refund_no="R1", amount="10.00"):
    return client.post(f"/api/orders/{order_no}/refunds", {"refund_no": refund_no, "amount": amount})


def given_back(sandbox, order_no):
    (charge,) = sandbox.charges(order_no)
    return [(one["number"].removeprefix(order_no), one["amount_minor"]) for one in charge["refunds"]]


def state():
    return Order.objects.get().status, Order.objects.get().refunded_minor, on_hand()


def unfinished():
    return IdempotencyRecord.objects.filter(operation="payments.refund", completed_at=None).count()


def ship(order_no):
    assert shopper("clerk", is_staff=True).post(f"/api/orders/{order_no}/ship").status_code == 200


class TestRefund:
    def test_gives_a_part_back_and_keeps_the_stock(self, alice, order_no, sandbox):
        answer = refund(alice, order_no)
        assert answer.status_code == 201, answer.content
        data = answer.json()["data"]
        assert data == {
            "orderId": order_no,
            "refundNo": "R1",
            "refundStatus": "refunded",
            "amount": "10.00",
            "currency": "CNY",
            "refundedAt": data["refundedAt"],
            "status": "PAID",
            "isDuplicate": False,
        }
        assert data["refundedAt"]
        assert given_back(sandbox, order_no) == [("-R1", 1000)]
        assert state() == (Status.PAID, 1000, 98)

    def test_answers_a_repeat_with_the_first(self, alice, order_no, sandbox):
        first = refund(alice, order_no).json()["data"]
        for amount in ("10.00", "10", "10.0"):
            repeat = refund(alice, order_no, amount=amount)
            assert (repeat.status_code, repeat["Idempotent-Replayed"]) == (200, "true")
            assert repeat.json()["data"] == {**first, "isDuplicate": True}
        assert given_back(sandbox, order_no) == [("-R1", 1000)]

    def test_in_full_closes_the_order_and_restores_the_stock_once(self, alice, order_no, sandbox):
        assert refund(alice, order_no, amount="39.80").json()["data"]["status"] == "REFUNDED"
        assert state() == (Status.REFUNDED, 3980, 100)
        assert refund(alice, order_no, amount="39.80").json()["data"]["isDuplicate"] is True
        assert state() == (Status.REFUNDED, 3980, 100)
        paid = alice.post(f"/api/orders/{order_no}/pay", {"method": "alipay"})
        assert (paid.status_code, paid.json()["data"]["payStatus"]) == (200, "refunded")
        assert len(sandbox.charges(order_no)) == 1

    def test_in_parts_closes_the_order_with_the_last(self, alice, order_no, sandbox):
        """PAY-06"""
        assert refund(alice, order_no, "R1", "30.00").json()["data"]["status"] == "PAID"
        assert refund(alice, order_no, "R2", "9.80").json()["data"]["status"] == "REFUNDED"
        assert state() == (Status.REFUNDED, 3980, 100)
        over = refund(alice, order_no, "R3", "0.01")
        assert (over.status_code, over.json()["code"]) == (409, "refund_exceeds_payment")
        assert given_back(sandbox, order_no) == [("-R1", 3000), ("-R2", 980)]

    def test_of_a_shipped_order_restores_no_stock(self, alice, order_no):
        ship(order_no)
        assert refund(alice, order_no, amount="39.80").json()["data"]["status"] == "REFUNDED"
        assert state() == (Status.REFUNDED, 3980, 98)

    def test_is_for_the_owner_and_staff(self, order_no, sandbox):
        assert refund(shopper("bob"), order_no).status_code == 404
        assert given_back(sandbox, order_no) == []
        assert refund(shopper("clerk", is_staff=True), order_no).status_code == 201

    def test_is_once_for_everybody(self, alice, order_no, sandbox):
        refund(alice, order_no)
        repeat = refund(shopper("clerk", is_staff=True), order_no)
        assert (repeat.status_code, repeat.json()["data"]["isDuplicate"]) == (200, True)
        assert given_back(sandbox, order_no) == [("-R1", 1000)]

    def test_under_atomic_requests_answers_the_same(self, alice, order_no, settings):
        settings.DATABASES["default"]["ATOMIC_REQUESTS"] = True
        try:
            answers = [refund(alice, order_no) for _ in range(2)]
        finally:
            settings.DATABASES["default"]["ATOMIC_REQUESTS"] = False
        assert [answer.status_code for answer in answers] == [201, 200]


class TestRefusal:
    @pytest.mark.parametrize(
        "amount", ["-5", "0", "0.00", "abc", "1.001", "1e1", "", " 1", "+1", "1.", ".5", "١", *NO_STRINGS]
    )
    def test_of_what_is_no_amount(self, alice, order_no, sandbox, amount):
        answer = refund(alice, order_no, amount=amount)
        assert answer.status_code == 400, answer.content
        assert (given_back(sandbox, order_no), Refund.objects.count()) == ([], 0)

    @pytest.mark.parametrize("refund_no", ["", "a b", "a@1", "x" * 40, "退", None, "R1\n"])
    def test_of_what_is_no_number(self, alice, order_no, refund_no):
        assert refund(alice, order_no, refund_no).status_code == 400

    def test_of_more_than_is_left(self, alice, order_no, sandbox):
        answer = refund(alice, order_no, amount="39.81")
        assert (answer.status_code, answer.json()["code"]) == (409, "refund_exceeds_payment")
        assert (state(), Refund.objects.count(), unfinished()) == ((Status.PAID, 0, 98), 0, 0)
        assert refund(alice, order_no, amount="39.80").status_code == 201
        assert given_back(sandbox, order_no) == [("-R1", 3980)]

    @pytest.mark.parametrize("amount", ["10.01", "99.00"])
    def test_of_a_number_that_has_another_amount(self, alice, order_no, sandbox, amount):
        refund(alice, order_no)
        answer = refund(alice, order_no, amount=amount)
        assert (answer.status_code, answer.json()["code"]) == (422, "refund_number_reused")
        assert given_back(sandbox, order_no) == [("-R1", 1000)]
        assert state() == (Status.PAID, 1000, 98)

    @pytest.mark.parametrize("cancelled", [True, False])
    def test_of_an_order_that_is_not_paid(self, alice, cancelled):
        order_no = order(alice).json()["data"]["orderId"]
        if cancelled:
            alice.post(f"/api/orders/{order_no}/cancel")
        answer = refund(alice, order_no)
        assert (answer.status_code, answer.json()["code"]) == (409, "invalid_transition")
        assert (Refund.objects.count(), unfinished()) == (0, 0)


class TestDeclined:
    def test_takes_back_what_was_set_aside_and_frees_the_number(self, alice, order_no, sandbox):
        sandbox.rule("decline", call="refund", order=order_no)
        answer = refund(alice, order_no, amount="39.80")
        assert (answer.status_code, answer.json()["code"]) == (409, "refund_declined")
        assert (state(), unfinished()) == ((Status.PAID, 0, 98), 0)
        assert Refund.objects.get().status == RefundStatus.FAILED
        assert refund(alice, order_no, amount="39.79").status_code == 422
        assert refund(alice, order_no, amount="39.80").status_code == 201
        assert given_back(sandbox, order_no) == [("-R1", 3980)]

    def test_unreachable_frees_the_number_too(self, alice, order_no, sandbox, settings):
        settings.SANDBOX_URL = f"http://127.0.0.1:{free_port()}"
        provider.cache_clear()
        assert refund(alice, order_no).status_code == 503
        assert (state(), unfinished()) == ((Status.PAID, 0, 98), 0)
        settings.SANDBOX_URL = sandbox.url
        provider.cache_clear()
        assert refund(alice, order_no).status_code == 201


class TestSilentProvider:
    @pytest.fixture(params=["silent_after", "error_after", "silent_before", "error_before"], autouse=True)
    def _silence(self, request, sandbox, order_no):
        sandbox.rule(request.param, call="refund", order=order_no)

    def test_is_unknown_and_asked_again_by_the_next_try(self, alice, order_no, sandbox):
        answer = refund(alice, order_no, amount="39.80")
        assert (answer.status_code, answer.json()["data"]["refundStatus"]) == (202, "unknown")
        assert (state(), unfinished()) == ((Status.PAID, 3980, 98), 1)
        assert refund(alice, order_no, amount="39.80").status_code == 201
        assert (state(), unfinished()) == ((Status.REFUNDED, 3980, 100), 0)
        assert given_back(sandbox, order_no) == [("-R1", 3980)]

    def test_stays_unknown_while_it_cannot_be_reached(self, alice, order_no, sandbox, settings):
        refund(alice, order_no)
        settings.SANDBOX_URL = f"http://127.0.0.1:{free_port()}"
        provider.cache_clear()
        assert [refund(alice, order_no).status_code for _ in range(2)] == [202, 202]
        assert (state(), unfinished()) == ((Status.PAID, 1000, 98), 1)
        settings.SANDBOX_URL = sandbox.url
        provider.cache_clear()
        assert refund(alice, order_no).status_code == 201
        assert given_back(sandbox, order_no) == [("-R1", 1000)]

    def test_keeps_the_amount_set_aside(self, alice, order_no, sandbox):
        refund(alice, order_no, amount="30.00")
        assert refund(alice, order_no, "R2", "9.81").json()["code"] == "refund_exceeds_payment"
        assert refund(alice, order_no, "R1", "1.00").status_code == 422
        assert refund(alice, order_no, "R2", "9.80").json()["data"]["status"] == "PAID"
        assert refund(alice, order_no, "R1", "30.00").json()["data"]["status"] == "REFUNDED"
        assert sorted(given_back(sandbox, order_no)) == [("-R1", 3000), ("-R2", 980)]

    def test_keeps_an_order_from_being_shipped_whose_money_all_goes_back(self, alice, order_no):
        refund(alice, order_no, amount="39.80")
        answer = shopper("clerk", is_staff=True).post(f"/api/orders/{order_no}/ship")
        assert (answer.status_code, answer.json()["code"]) == (409, "invalid_transition")


class TestDatabase:
    """The last line: what holds when the code does not."""

    def test_refuses_more_refunds_than_payment(self, order_no):
        with pytest.raises(IntegrityError), transaction.atomic():
            Order.objects.update(refunded_minor=3981)

    def test_refuses_a_second_payment_of_one_number(self, order_no):
        payment = Payment.objects.get()
        payment.pk, payment.provider_key = None, None
        with pytest.raises(IntegrityError), transaction.atomic():
            payment.save(force_insert=True)

    def test_refuses_a_second_refund_of_one_number(self, alice, order_no):
        refund(alice, order_no)
        row = Refund.objects.get()
        row.pk = None
        with pytest.raises(IntegrityError), transaction.atomic():
            row.save(force_insert=True)
