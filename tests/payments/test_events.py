"""What the shop tells of its payments: once for each order, and only of what was committed."""

import json
from datetime import UTC, datetime

import pytest
from django.db import transaction

from idempotency.models import OutboxMessage
from orders.models import Order, Status
from payments.services import settle_payment, settle_refund
from tests.shopping import order, sell, shopper

pytestmark = [pytest.mark.django_db, pytest.mark.urls("config.urls")]

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def bought():
    sell()
    return Order.objects.get(order_no=order(shopper("alice"), ("TEA-100", 2)).json()["data"]["orderId"])


def pay(order, number="T1"):
    money = {"amount_minor": 3980, "currency": "CNY"}
    return settle_payment(order=order, provider="alipay", provider_payment_no=number, paid_at=NOON, **money)


def give_back(order, refund_no, amount_minor):
    return settle_refund(
        order=order, refund_no=refund_no, amount_minor=amount_minor, provider_refund_no=None, now=NOON
    )


def messages():
    rows = OutboxMessage.objects.order_by("pk").values_list("topic", "key", "payload")
    return [(topic, key, json.loads(payload)) for topic, key, payload in rows]


def facts(order, **more):
    user = {"order_no": order.order_no, "user_id": order.user_id}
    return {**user, "amount_minor": 3980, "currency": "CNY", **more}


class TestPaid:
    def test_is_told_once_however_many_doors_it_comes_through(self, bought):
        pay(bought)
        pay(bought)
        told = facts(bought, paid_at="2025-01-01T12:00:00+00:00")
        assert messages() == [("orders.paid", bought.order_no, told)]

    def test_is_not_told_of_what_was_rolled_back(self, bought):
        with transaction.atomic():
            pay(bought)
            transaction.set_rollback(True)
        bought.refresh_from_db()
        assert bought.status == Status.PENDING
        assert messages() == []

    def test_is_not_told_of_a_second_charge(self, bought):
        pay(bought)
        pay(bought, "T2")
        assert [topic for topic, *_ in messages()] == ["orders.paid"]


class TestRefunded:
    def test_is_told_once_all_is_given_back(self, bought):
        pay(bought)
        give_back(bought, "R1", 1000)
        assert [topic for topic, *_ in messages()] == ["orders.paid"]
        give_back(bought, "R2", 2980)
        give_back(bought, "R2", 2980)
        assert messages()[1:] == [("orders.refunded", bought.order_no, facts(bought))]
