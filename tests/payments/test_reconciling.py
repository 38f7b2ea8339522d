"""``manage.py reconcile_payments``: what was begun is finished once, whoever looks, and however often."""

from io import StringIO

import pytest
from django.core.management import call_command

from idempotency.leased import Claim
from idempotency.models import IdempotencyRecord
from orders.models import Order, Status
from payments.models import Payment, PaymentStatus, Refund, RefundStatus
from payments.providers import provider
from payments.reconciling import reconcile
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
    return order(alice, ("TEA-100", 2)).json()["data"]["orderId"]


def pay(client, order_no, method="alipay"):
    return client.post(f"/api/orders/{order_no}/pay", {"method": method})


def refund(client, order_no, amount="39.80"):
    return client.post(f"/api/orders/{order_no}/refunds", {"refund_no": "R_1", "amount": amount})


def cancel(client, order_no):
    assert client.post(f"/api/orders/{order_no}/cancel").status_code == 200


def findings():
    return [(finding.operation, finding.result) for finding in reconcile()]


def unfinished():
    return IdempotencyRecord.objects.filter(completed_at=None).count()


class Killed:
    """Kill an attempt at a point: in a step before it is done, in a call once it is, or before completion.

    A killed process does nothing more: its lease ends, and that is all.
    """

    def __init__(self, monkeypatch):
        self.monkeypatch = monkeypatch

    def at(self, name, point):
        original = getattr(Claim, name)

        def killed(claim, *arguments):
            if arguments[0] == point or name == "complete":
                if name == "call":
                    arguments[1](claim.provider_key(point))
                raise SystemExit
            return original(claim, *arguments)

        self.monkeypatch.setattr(Claim, name, killed)

    def run(self, act):
        with pytest.raises(SystemExit):
            act()
        self.monkeypatch.undo()
        # What the lease's end does.
        IdempotencyRecord.objects.filter(completed_at=None).update(leased_until="2020-01-01T00:00:00Z")


@pytest.fixture
def killed(monkeypatch):
    with monkeypatch.context() as context:
        yield Killed(context)


class TestPayment:
    @pytest.mark.parametrize("mode", ["silent_after", "error_after"])
    def test_that_was_charged_is_settled_once(self, alice, order_no, sandbox, mode):
        sandbox.rule(mode, order=order_no)
        assert pay(alice, order_no).status_code == 202
        assert findings() == [("payments.pay", "paid")]
        assert findings() == []
        assert (Order.objects.get().status, Payment.objects.get().status) == ("PAID", "SUCCEEDED")
        assert (len(sandbox.charges(order_no)), unfinished()) == (1, 0)
        assert pay(alice, order_no).json()["data"]["isDuplicate"] is True

    @pytest.mark.parametrize("mode", ["silent_before", "error_before"])
    def test_that_was_not_charged_is_given_up_for_good(self, alice, order_no, sandbox, mode):
        sandbox.rule(mode, order=order_no)
        pay(alice, order_no)
        assert findings() == [("payments.pay", "nothing_charged")]
        assert findings() == []
        assert (Order.objects.get().status, Payment.objects.get().status) == ("PENDING", "FAILED")
        assert (sandbox.charges(order_no), unfinished()) == ([], 0)
        assert pay(alice, order_no, "wechat").status_code == 200
        assert len(sandbox.charges(order_no)) == 1

    def test_that_was_declined_is_given_up(self, alice, order_no, sandbox, killed):
        sandbox.rule("decline", order=order_no)
        killed.at("call", "charge")
        killed.run(lambda: pay(alice, order_no))
        assert findings() == [("payments.pay", "payment_declined")]
        assert (Payment.objects.get().status, unfinished()) == (PaymentStatus.FAILED, 0)

    def test_stays_while_the_provider_is_silent(self, alice, order_no, sandbox):
        sandbox.rule("silent_after", order=order_no)
        sandbox.rule("error_before", call="find", times=2)
        pay(alice, order_no)
        assert [findings() for _ in range(3)] == [
            [("payments.pay", "unknown")],
            [("payments.pay", "unknown")],
            [("payments.pay", "paid")],
        ]

    @pytest.mark.parametrize(
        ("name", "point", "result", "charges"),
        [
            ("step", "begin", "nothing_charged", 0),
            ("call", "charge", "paid", 1),
            ("complete", "", "paid", 1),
        ],
    )
    def test_of_a_killed_process_is_finished(
        self, alice, order_no, sandbox, killed, name, point, result, charges
    ):
        killed.at(name, point)
        killed.run(lambda: pay(alice, order_no))
        assert len(sandbox.charges(order_no)) == charges
        assert findings() == [("payments.pay", result)]
        assert findings() == []
        assert unfinished() == 0
        assert pay(alice, order_no).status_code == 200
        assert (len(sandbox.charges(order_no)), Order.objects.get().status) == (1, Status.PAID)

    def test_whose_lease_has_not_ended_is_left_alone(self, alice, order_no, sandbox, killed):
        killed.at("call", "charge")
        with pytest.raises(SystemExit):
            pay(alice, order_no)
        assert findings() == []
        assert unfinished() == 1
        answer = pay(alice, order_no)
        assert (answer.status_code, answer.json()["code"]) == (409, "operation_in_progress")


class TestLateCharge:
    @pytest.fixture(autouse=True)
    def _late(self, alice, order_no, sandbox):
        sandbox.rule("silent_after", order=order_no)
        pay(alice, order_no)
        cancel(alice, order_no)

    def test_of_a_cancelled_order_is_given_back_once(self, order_no, sandbox):
        assert findings() == [("payments.pay", "refund_due"), ("payments.return", "returned")]
        assert findings() == []
        (charge,) = sandbox.charges(order_no)
        assert [one["amount_minor"] for one in charge["refunds"]] == [3980]
        assert Payment.objects.get().status == PaymentStatus.REFUNDED
        assert (Order.objects.get().status, on_hand(), unfinished()) == (Status.CANCELLED, 100, 0)

    @pytest.mark.parametrize("mode", ["silent_after", "error_after", "silent_before"])
    def test_is_given_back_once_by_a_silent_provider(self, order_no, sandbox, mode):
        sandbox.rule(mode, call="refund", order=order_no)
        assert findings()[-1] == ("payments.return", "unknown")
        assert findings() == [("payments.return", "returned")]
        (charge,) = sandbox.charges(order_no)
        assert len(charge["refunds"]) == 1

    def test_stays_due_where_the_provider_refuses(self, order_no, sandbox):
        sandbox.rule("decline", call="refund", order=order_no)
        assert findings()[-1] == ("payments.return", "refund_declined")
        assert Payment.objects.get().status == PaymentStatus.REFUND_DUE
        assert findings() == [("payments.return", "returned")]


class TestRefund:
    @pytest.fixture(autouse=True)
    def _paid(self, alice, order_no):
        assert pay(alice, order_no).status_code == 200

    @pytest.mark.parametrize("mode", ["silent_after", "silent_before"])
    def test_is_made_once_by_a_silent_provider(self, alice, order_no, sandbox, mode):
        sandbox.rule(mode, call="refund", order=order_no)
        assert refund(alice, order_no).status_code == 202
        assert findings() == [("payments.refund", "refunded")]
        assert findings() == []
        (charge,) = sandbox.charges(order_no)
        assert [one["number"] for one in charge["refunds"]] == [f"{order_no}-R_1"]
        assert (Order.objects.get().status, on_hand()) == (Status.REFUNDED, 100)
        assert refund(alice, order_no).json()["data"]["isDuplicate"] is True

    @pytest.mark.parametrize(
        ("name", "point", "result"),
        [("step", "begin", "nothing_charged"), ("call", "refund", "refunded"), ("complete", "", "refunded")],
    )
    def test_of_a_killed_process_is_finished(self, alice, order_no, sandbox, killed, name, point, result):
        killed.at(name, point)
        killed.run(lambda: refund(alice, order_no))
        assert findings() == [("payments.refund", result)]
        assert unfinished() == 0
        assert refund(alice, order_no).status_code in (200, 201)
        (charge,) = sandbox.charges(order_no)
        assert len(charge["refunds"]) == 1

    def test_that_was_declined_is_given_up(self, alice, order_no, sandbox):
        sandbox.rule("silent_before", call="refund", order=order_no)
        sandbox.rule("decline", call="refund", order=order_no)
        refund(alice, order_no)
        assert findings() == [("payments.refund", "refund_declined")]
        assert (Refund.objects.get().status, Order.objects.get().refunded_minor) == (RefundStatus.FAILED, 0)


class TestCommand:
    def test_prints_what_it_did(self, alice, order_no, sandbox):
        sandbox.rule("silent_after", order=order_no)
        pay(alice, order_no)
        for expected in (f"payments.pay {order_no}: paid\n1 looked at\n", "0 looked at\n"):
            output = StringIO()
            call_command("reconcile_payments", "--once", stdout=output)
            assert output.getvalue() == expected

    def test_goes_on_after_what_it_cannot_finish(self, alice, order_no, sandbox, monkeypatch):
        other = order(alice, ("TEA-100", 1)).json()["data"]["orderId"]
        for number in (order_no, other):
            sandbox.rule("silent_after", order=number)
            pay(alice, number)
        find = provider("alipay").find
        keys = set(Payment.objects.filter(order__order_no=order_no).values_list("provider_key", flat=True))

        def broken(*, key):
            if key in keys:
                raise ZeroDivisionError
            return find(key=key)

        monkeypatch.setattr(provider("alipay"), "find", broken)
        assert sorted(result for _, result in findings()) == ["failed", "paid"]
        monkeypatch.undo()
        assert findings() == [("payments.pay", "paid")]
