"""``POST /api/orders/{orderId}/pay``, at the sandbox over real HTTP."""

from dataclasses import replace

import httpx
import pytest
from django.utils.dateparse import parse_datetime

from idempotency.models import IdempotencyRecord
from orders.models import Order, Status
from payments.exceptions import NothingCharged
from payments.models import Payment, PaymentStatus
from payments.paying import pay as pay_service
from payments.providers import provider
from tests.servers.private import free_port
from tests.shopping import http_client, on_hand, order, request_body, sell, shopper

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


def pay(client, order_no, method="alipay", **members):
    return client.post(f"/api/orders/{order_no}/pay", {"method": method, **members})


def payments():
    return list(Payment.objects.order_by("pk").values_list("provider", "status"))


def unfinished():
    return IdempotencyRecord.objects.filter(operation="payments.pay", completed_at=None).count()


class TestPay:
    def test_charges_the_orders_amount_and_pays_it(self, alice, order_no, sandbox):
        answer = pay(alice, order_no)
        assert answer.status_code == 200, answer.content
        assert answer.json()["message"] == "Order paid"
        data = answer.json()["data"]
        (charge,) = sandbox.charges(order_no)
        assert (charge["provider"], charge["amount_minor"], charge["currency"]) == ("alipay", 3980, "CNY")
        assert data == {
            "orderId": order_no,
            "payStatus": "paid",
            "amount": "39.80",
            "currency": "CNY",
            "paidAt": data["paidAt"],
            "isDuplicate": False,
        }
        assert parse_datetime(data["paidAt"]) == parse_datetime(charge["paid_at"])
        paid = Order.objects.get()
        assert (paid.status, paid.paid_at) == (Status.PAID, parse_datetime(charge["paid_at"]))
        payment = Payment.objects.get()
        assert payment.status == PaymentStatus.SUCCEEDED
        assert (payment.provider_key, payment.provider_payment_no) == (charge["key"], charge["payment_no"])

    def test_answers_a_repeat_without_asking_the_provider(self, alice, order_no, sandbox, settings):
        """PAY-03"""
        first = pay(alice, order_no).json()["data"]
        settings.SANDBOX_URL = f"http://127.0.0.1:{free_port()}"
        provider.cache_clear()
        for method in ("alipay", "wechat"):
            repeat = pay(alice, order_no, method)
            assert (repeat.status_code, repeat["Idempotent-Replayed"]) == (200, "true")
            assert repeat.json()["data"] == {**first, "isDuplicate": True}
        assert len(sandbox.charges(order_no)) == 1
        assert payments() == [("alipay", PaymentStatus.SUCCEEDED)]

    @pytest.mark.parametrize("amount", ["0.01", "-1", "39.801", 0.01, "abc"])
    def test_takes_no_amount_from_the_client(self, alice, order_no, sandbox, amount):
        """PAY-09"""
        assert pay(alice, order_no, amount=amount, currency="USD").status_code == 200
        assert [(c["amount_minor"], c["currency"]) for c in sandbox.charges(order_no)] == [(3980, "CNY")]

    @pytest.mark.parametrize(
        ("currency", "price_minor", "amount"), [("JPY", 10000, "10000"), ("KWD", 1234, "1.234")]
    )
    def test_speaks_in_minor_units_of_the_currency(self, alice, sandbox, currency, price_minor, amount):
        """PAY-04"""
        sell(sku="GIFT", price_minor=price_minor, currency=currency)
        order_no = order(alice, ("GIFT", 1), currency=currency).json()["data"]["orderId"]
        assert pay(alice, order_no).json()["data"]["amount"] == amount
        assert [c["amount_minor"] for c in sandbox.charges(order_no)] == [price_minor]

    @pytest.mark.parametrize("body", [{}, {"method": "cash"}, {"method": None}, {"method": 7}])
    def test_needs_a_method_of_the_shop(self, alice, order_no, sandbox, body):
        assert alice.post(f"/api/orders/{order_no}/pay", body).status_code == 400
        assert (sandbox.charges(order_no), payments(), unfinished()) == ([], [], 0)

    def test_is_for_the_owner(self, order_no, sandbox):
        assert pay(shopper("bob"), order_no).status_code == 404
        assert pay(shopper("clerk", is_staff=True), order_no).status_code == 403
        assert (sandbox.charges(order_no), payments()) == ([], [])

    def test_under_atomic_requests_answers_the_same(self, alice, order_no, settings):
        settings.DATABASES["default"]["ATOMIC_REQUESTS"] = True
        try:
            answers = [pay(alice, order_no) for _ in range(2)]
        finally:
            settings.DATABASES["default"]["ATOMIC_REQUESTS"] = False
        assert [answer.status_code for answer in answers] == [200, 200]

    def test_has_a_key_of_its_own(self, alice, sandbox):
        """KEY-03"""
        headers = {"Idempotency-Key": "K"}
        order_no = order(alice, ("TEA-100", 2), key="K").json()["data"]["orderId"]
        answer = alice.post(f"/api/orders/{order_no}/pay", {"method": "card"}, headers=headers)
        assert answer.json()["data"]["payStatus"] == "paid"
        assert len(sandbox.charges(order_no)) == 1

    def test_of_nothing_is_refused(self, alice, order_no, sandbox):
        Order.objects.filter(order_no=order_no).update(amount_minor=0)
        answer = pay(alice, order_no)
        assert (answer.status_code, answer.json()["code"]) == (409, "invalid_transition")
        assert (sandbox.charges(order_no), payments(), unfinished()) == ([], [], 0)

    def test_leaves_a_shipped_order_shipped(self, alice, order_no, sandbox):
        """PAY-05"""
        clerk = shopper("clerk", is_staff=True)
        assert clerk.post(f"/api/orders/{order_no}/ship").json()["code"] == "invalid_transition"
        assert [pay(alice, order_no).status_code for _ in range(2)] == [200, 200]
        assert alice.post(f"/api/orders/{order_no}/ship").status_code == 403
        assert shopper("bob").post(f"/api/orders/{order_no}/ship").status_code == 404
        shipped = clerk.post(f"/api/orders/{order_no}/ship")
        assert (shipped.status_code, shipped.json()["data"]["status"]) == (200, "SHIPPED")
        first = Order.objects.get()
        repeat = clerk.post(f"/api/orders/{order_no}/ship")
        assert (repeat.status_code, repeat.json()["data"]["isDuplicate"]) == (200, True)
        assert pay(alice, order_no).json()["data"]["payStatus"] == "paid"
        assert alice.post(f"/api/orders/{order_no}/cancel").status_code == 409
        last = Order.objects.get()
        assert (last.status, last.paid_at, last.shipped_at) == ("SHIPPED", first.paid_at, first.shipped_at)
        assert len(sandbox.charges(order_no)) == 1


class TestDeclined:
    def test_leaves_the_order_pending_and_any_method_free(self, alice, order_no, sandbox):
        sandbox.rule("decline", order=order_no)
        answer = pay(alice, order_no)
        assert (answer.status_code, answer.json()["code"]) == (402, "payment_declined")
        assert Order.objects.get().status == Status.PENDING
        assert (payments(), unfinished()) == ([("alipay", PaymentStatus.FAILED)], 0)
        assert pay(alice, order_no, "wechat").status_code == 200
        assert payments() == [("alipay", PaymentStatus.FAILED), ("wechat", PaymentStatus.SUCCEEDED)]
        assert [charge["provider"] for charge in sandbox.charges(order_no)] == ["wechat"]

    def test_asks_again_with_a_fresh_key(self, alice, order_no, sandbox):
        """The sandbox says no for ever to a key that it has declined, as providers do."""
        sandbox.rule("decline", order=order_no)
        assert [pay(alice, order_no).status_code for _ in range(2)] == [402, 200]
        assert len(set(Payment.objects.values_list("provider_key", flat=True))) == 2


class TestSilentProvider:
    @pytest.fixture(params=["silent_after", "error_after", "silent_before", "error_before"])
    def silence(self, request, sandbox, order_no):
        sandbox.rule(request.param, order=order_no)
        return request.param

    def test_is_unknown_and_asked_again_by_the_next_try(self, alice, order_no, sandbox, silence):
        """PAY-01"""
        answer = pay(alice, order_no)
        assert answer.status_code == 202
        assert (answer.json()["code"], answer.json()["data"]["payStatus"]) == (202, "unknown")
        assert answer["Retry-After"]
        assert (payments(), unfinished()) == ([("alipay", PaymentStatus.PROCESSING)], 1)
        retry = pay(alice, order_no, "wechat")
        assert (retry.status_code, retry.json()["data"]["isDuplicate"]) == (200, False)
        (charge,) = sandbox.charges(order_no)
        assert charge["provider"] == "alipay"
        assert (payments(), unfinished()) == ([("alipay", PaymentStatus.SUCCEEDED)], 0)

    def test_stays_unknown_while_it_cannot_be_reached(self, alice, order_no, sandbox, silence, settings):
        pay(alice, order_no)
        settings.SANDBOX_URL = f"http://127.0.0.1:{free_port()}"
        provider.cache_clear()
        assert [pay(alice, order_no).status_code for _ in range(2)] == [202, 202]
        settings.SANDBOX_URL = sandbox.url
        provider.cache_clear()
        assert pay(alice, order_no).status_code == 200
        assert len(sandbox.charges(order_no)) == 1

    def test_waits_no_longer_than_the_timeout(self, alice, order_no, sandbox):
        sandbox.rule("slow", order=order_no, seconds=5)
        assert pay(alice, order_no).status_code == 202
        assert pay(alice, order_no).status_code == 200
        assert len(sandbox.charges(order_no)) == 1


class TestUnreachableProvider:
    def test_frees_the_key_as_nothing_was_sent(self, alice, order_no, sandbox, settings):
        settings.SANDBOX_URL = f"http://127.0.0.1:{free_port()}"
        provider.cache_clear()
        answer = pay(alice, order_no)
        assert (answer.status_code, answer.json()["code"]) == (503, "provider_unreachable")
        assert answer["Retry-After"]
        assert (payments(), unfinished()) == ([("alipay", PaymentStatus.FAILED)], 0)
        settings.SANDBOX_URL = sandbox.url
        provider.cache_clear()
        assert pay(alice, order_no, "wechat").status_code == 200
        assert [charge["provider"] for charge in sandbox.charges(order_no)] == ["wechat"]


class TestCancelledOrder:
    def test_is_not_charged(self, alice, order_no, sandbox):
        alice.post(f"/api/orders/{order_no}/cancel")
        answer = pay(alice, order_no)
        assert (answer.status_code, answer.json()["code"]) == (409, "invalid_transition")
        assert (sandbox.charges(order_no), payments(), unfinished()) == ([], [], 0)

    def test_is_not_revived_by_a_charge_that_arrives_late(self, alice, order_no, sandbox, monkeypatch):
        charge = provider("alipay").charge

        def charge_and_cancel(**asked):
            charged = charge(**asked)
            assert alice.post(f"/api/orders/{order_no}/cancel").status_code == 200
            return charged

        monkeypatch.setattr(provider("alipay"), "charge", charge_and_cancel)
        answer = pay(alice, order_no)
        assert (answer.status_code, answer.json()["code"]) == (409, "invalid_transition")
        assert (Order.objects.get().status, on_hand()) == (Status.CANCELLED, 100)
        assert payments() == [("alipay", PaymentStatus.REFUND_DUE)]
        assert pay(alice, order_no).status_code == 409
        assert len(sandbox.charges(order_no)) == 1

    def test_is_not_charged_by_the_retry_of_a_lost_attempt(self, alice, order_no, sandbox):
        sandbox.rule("silent_before", order=order_no)
        assert pay(alice, order_no).status_code == 202
        key = Payment.objects.get().provider_key
        alice.post(f"/api/orders/{order_no}/cancel")
        answer = pay(alice, order_no)
        assert (answer.status_code, answer.json()["code"]) == (409, "invalid_transition")
        assert (payments(), unfinished()) == ([("alipay", PaymentStatus.FAILED)], 0)
        late = {"key": key, "order_no": order_no, "amount_minor": 3980, "currency": "CNY"}
        with pytest.raises(
            httpx.HTTPStatusError, match="402"
        ):  # the first request, if it should still arrive
            sandbox.send("POST", "/alipay/charges", json=late)
        assert sandbox.charges(order_no) == []


class TestMismatch:
    @pytest.mark.parametrize("told", [{"amount_minor": 398000}, {"amount_minor": 39}, {"currency": "USD"}])
    def test_leaves_the_order_unpaid_and_charges_no_second_time(
        self, alice, order_no, sandbox, monkeypatch, told
    ):
        """PAY-04"""
        charge = provider("alipay").charge
        monkeypatch.setattr(provider("alipay"), "charge", lambda **asked: replace(charge(**asked), **told))
        assert [pay(alice, order_no).status_code for _ in range(2)] == [202, 202]
        assert Order.objects.get().status == Status.PENDING
        assert len(sandbox.charges(order_no)) == 1


class TestService:
    def test_starts_nothing_when_nobody_asks(self, order_no, sandbox):
        with pytest.raises(NothingCharged):
            pay_service(order_no=order_no, method=None)
        assert (sandbox.charges(order_no), payments(), unfinished()) == ([], [], 0)


@pytest.mark.mariadb
class TestOnMariaDB:
    """Its usual collations take ``ORD1`` and ``ORD1 `` for one number."""

    def test_a_blank_behind_the_number_is_no_second_payment(self, serve, sandbox):
        server = serve(database="mariadb", env={"SANDBOX_URL": sandbox.url, "PAYMENTS_READ_TIMEOUT": "2"})
        with http_client(server.url) as client:
            order_no = client.post("/api/orders", json=request_body(client_order_no="C")).json()["data"][
                "orderId"
            ]
            sandbox.rule("silent_after", order=order_no)
            assert client.post(f"/api/orders/{order_no}/pay", json={"method": "alipay"}).status_code == 202
            other = client.post(f"/api/orders/{order_no}%20/pay", json={"method": "alipay"})
        charges = sandbox.charges(order_no) + sandbox.charges(f"{order_no} ")
        assert (other.status_code, len(charges)) == (404, 1)
