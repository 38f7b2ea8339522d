from datetime import datetime

import pytest
from django.contrib.auth import get_user_model
from django.core.cache import cache
from rest_framework.throttling import SimpleRateThrottle

from idempotency.models import IdempotencyRecord
from orders.models import Article, Order, OrderLine
from stock.models import StockItem
from tests.shopping import counts, on_hand, order, request_body, sell, shopper

pytestmark = [pytest.mark.django_db, pytest.mark.urls("config.urls")]


@pytest.fixture(autouse=True)
def _tea():
    sell()


class TestFirst:
    def test_answers_201_with_the_new_order(self):
        answer = order(shopper(), ("TEA-100", 2))

        made = Order.objects.get()
        body = answer.json()
        assert answer.status_code == 201
        assert list(body) == ["code", "message", "data"]
        assert (body["code"], body["message"]) == (201, "Order created")
        assert datetime.fromisoformat(body["data"].pop("createdAt")) == made.created_at
        assert body["data"] == {
            "orderId": made.order_no,
            "status": "PENDING",
            "amount": "39.80",
            "currency": "CNY",
            "isDuplicate": False,
        }
        assert answer["Location"] == f"/api/orders/{made.order_no}"
        assert "Idempotent-Replayed" not in answer
        assert on_hand() == 98

    def test_speaks_chinese_where_the_client_does(self):
        client = shopper()
        client.defaults["HTTP_ACCEPT_LANGUAGE"] = "zh-CN"
        assert order(client).json()["message"] == "订单已创建"

    def test_gives_a_yen_amount_no_decimals(self):
        sell(sku="SAKE", price_minor=1500, currency="JPY")
        assert order(shopper(), ("SAKE", 2), currency="JPY").json()["data"]["amount"] == "3000"

    def test_shows_the_key_as_user_cart_and_uuid(self):
        order(shopper(), key="a1b2", cart_id="my_cart")
        user = get_user_model().objects.get()
        assert IdempotencyRecord.objects.get().label == f"{user.pk}_my%5Fcart_a1b2"

    def test_sums_two_lines_of_one_article(self):
        """STK-06"""
        order(shopper(), ("TEA-100", 1), ("TEA-100", 2))
        assert OrderLine.objects.get().quantity == 3
        assert on_hand() == 97

    def test_orders_by_client_order_no_alone(self):
        assert order(shopper(), key="", client_order_no="C").status_code == 201


class TestRepeat:
    def test_answers_200_with_the_first_order(self):
        client = shopper()
        first = order(client, key="K").json()["data"]
        repeat = order(client, key="K")

        assert repeat.status_code == 200
        assert repeat.json() == {
            "code": 200,
            "message": "Order created",
            "data": {**first, "isDuplicate": True},
        }
        assert repeat["Idempotent-Replayed"] == "true"
        assert (Order.objects.count(), on_hand()) == (1, 98)

    def test_tells_the_present_status(self):
        client = shopper()
        first = order(client, key="K").json()["data"]
        client.post(f"/api/orders/{first['orderId']}/cancel")
        assert order(client, key="K").json()["data"] == {**first, "status": "CANCELLED", "isDuplicate": True}

    @pytest.mark.parametrize("key", [None, ""])
    def test_is_known_by_client_order_no_under_a_new_key_or_none(self, key):
        """KEY-28, HTTP-09, ORD-09"""
        client = shopper()
        first = order(client, client_order_no="C").json()["data"]
        repeat = order(client, key=key, client_order_no="C")

        assert repeat.status_code == 200
        assert repeat.json()["data"] == {**first, "isDuplicate": True}
        assert repeat["Idempotent-Replayed"] == "true"
        assert (Order.objects.count(), on_hand()) == (1, 98)

    def test_under_a_new_key_is_itself_repeated(self):
        client = shopper()
        first = order(client, key="K1", client_order_no="C").json()["data"]
        answers = [order(client, key="K2", client_order_no="C") for _ in range(2)]
        assert [answer.status_code for answer in answers] == [200, 200]
        assert {answer.json()["data"]["orderId"] for answer in answers} == {first["orderId"]}

    def test_is_known_after_the_record_is_gone(self):
        """KEY-19"""
        client = shopper()
        first = order(client, key="K", client_order_no="C").json()["data"]
        IdempotencyRecord.objects.all().delete()
        late = order(client, key="K", client_order_no="C")
        assert (late.status_code, late.json()["data"]["orderId"]) == (200, first["orderId"])
        assert (Order.objects.count(), on_hand()) == (1, 98)

    def test_gets_its_order_though_price_and_stock_have_gone(self):
        client = shopper()
        order(client, client_order_no="C")
        Article.objects.update(price_minor=1, currency="USD")
        StockItem.objects.recount(sku="TEA-100", on_hand=0)
        assert order(client, client_order_no="C").status_code == 200

    def test_of_another_user_is_an_order_of_their_own(self):
        answers = [order(shopper(name), key="K", client_order_no="C") for name in ("alice", "bob")]
        assert [answer.status_code for answer in answers] == [201, 201]
        assert Order.objects.count() == 2


class TestReuse:
    def test_of_a_key_for_another_cart_or_other_lines_is_refused(self):
        """ORD-07"""
        client = shopper()
        order(client, key="K")
        before = counts()
        for other in (order(client, key="K", cart_id="other"), order(client, ("TEA-100", 3), key="K")):
            assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
        assert counts() == before

    @pytest.mark.parametrize("key", [None, ""])
    @pytest.mark.parametrize("other", [{"lines": [{"sku": "TEA-100", "quantity": 3}]}, {"currency": "USD"}])
    def test_of_an_order_number_for_something_else_is_refused_and_names_the_order(self, key, other):
        """ORD-07"""
        client = shopper()
        first = order(client, client_order_no="C").json()["data"]
        before = counts()
        answer = order(client, key=key, client_order_no="C", **other)
        assert answer.status_code == 422
        assert (answer.json()["code"], answer.json()["orderId"]) == ("order_number_reused", first["orderId"])
        assert (counts(), on_hand()) == (before, 98)

    def test_of_an_order_number_in_another_cart_is_a_repeat(self):
        client = shopper()
        order(client, client_order_no="C")
        assert order(client, client_order_no="C", cart_id="other").status_code == 200


class TestRefusal:
    def test_of_an_order_without_any_name(self):
        before = counts()
        answer = order(shopper(), key="")
        assert (answer.status_code, answer.json()["code"]) == (400, "idempotency_key_missing")
        assert answer["Content-Type"] == "application/problem+json"
        assert counts() == before

    @pytest.mark.parametrize("quantity", [-5, 0, 1.5, 1.0, "2", "２", 1e9, 10**9, 10**20, True, None, [1]])
    def test_of_an_odd_quantity_names_the_line(self, quantity):
        """ORD-06"""
        before = counts()
        answer = order(shopper(), ("TEA-100", 1), ("TEA-100", quantity))

        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (400, "invalid")
        assert [error["pointer"] for error in problem["errors"]] == ["#/lines/1/quantity"]
        assert "#/lines/1/quantity" in problem["detail"]
        assert (counts(), on_hand()) == (before, 100)

    def test_of_plus_and_minus_with_a_positive_sum(self):
        """ORD-06"""
        answer = order(shopper(), ("TEA-100", 2), ("TEA-100", -1))
        assert answer.json()["errors"][0]["pointer"] == "#/lines/1/quantity"

    def test_of_an_unknown_article_undoes_all_and_frees_the_key(self):
        """ORD-04"""
        sell(sku="CUP-010")
        client, before = shopper(), counts()
        answer = order(client, ("TEA-100", 1), ("CUP-010", 1), ("NO-SUCH", 1), key="K")

        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (400, "invalid")
        assert problem["errors"] == [
            {"pointer": "#/lines/2/sku", "code": "unknown_sku", "detail": "There is no article NO-SUCH."}
        ]
        assert (counts(), on_hand(), on_hand("CUP-010")) == (before, 100, 100)
        assert order(client, ("TEA-100", 1), ("CUP-010", 1), key="K").status_code == 201

    def test_of_a_currency_that_is_not_the_articles(self):
        answer = order(shopper(), currency="USD")
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["code"] == "currency_mismatch"

    def test_of_more_than_is_on_hand_undoes_all_and_frees_the_key(self):
        sell(sku="CUP-010", stock=1)
        client, before = shopper(), counts()
        answer = order(client, ("TEA-100", 1), ("CUP-010", 2), key="K")

        assert (answer.status_code, answer.json()["code"]) == (409, "insufficient_stock")
        assert answer["Content-Type"] == "application/problem+json"
        assert (counts(), on_hand(), on_hand("CUP-010")) == (before, 100, 1)
        StockItem.objects.recount(sku="CUP-010", on_hand=2)
        assert order(client, ("TEA-100", 1), ("CUP-010", 2), key="K").status_code == 201

    def test_of_more_than_is_on_hand_is_said_in_chinese(self):
        client = shopper()
        client.defaults["HTTP_ACCEPT_LANGUAGE"] = "zh-hans"
        assert order(client, ("TEA-100", 101)).json()["detail"] == "库存不足，请选择其他商品"

    def test_without_a_key_leaves_nothing_either(self):
        client, before = shopper(), counts()
        assert order(client, ("TEA-100", 101), key="", client_order_no="C").status_code == 409
        assert (counts(), on_hand()) == (before, 100)

    @pytest.mark.parametrize("body", [[], "text", None, {}, {"lines": {}}])
    def test_of_what_is_no_order(self, body):
        answer = shopper().post("/api/orders", body, headers={"Idempotency-Key": "K"})
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid")

    @pytest.mark.parametrize(
        ("body", "content_type", "status", "code"),
        [
            (b"{", "application/json", 400, "parse_error"),
            (b"", "application/json", 400, "invalid"),
            (b"a=1", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
        ],
    )
    def test_of_what_cannot_be_read(self, body, content_type, status, code):
        answer = shopper().generic(
            "POST", "/api/orders", body, content_type, headers={"Idempotency-Key": "K"}
        )
        assert (answer.status_code, answer.json()["code"]) == (status, code)

    def test_of_a_stranger_is_401(self):
        answer = shopper().post("/api/orders", request_body(), headers={"Authorization": "Token wrong"})
        assert (answer.status_code, answer.json()["code"]) == (401, "authentication_failed")
        assert answer["WWW-Authenticate"] == "Token"
        assert IdempotencyRecord.objects.count() == 0

    def test_of_one_who_may_not_come_in_any_more_says_nothing_of_the_order(self):
        """SEC-01"""
        client = shopper()
        first = order(client, key="K")
        get_user_model().objects.update(is_active=False)
        repeat = order(client, key="K")
        assert (repeat.status_code, repeat.json()["code"]) == (401, "authentication_failed")
        assert first.json()["data"]["orderId"] not in repeat.content.decode()

    def test_of_one_who_asks_too_often_touches_no_key(self, monkeypatch):
        """SEC-02"""
        cache.clear()  # another test's user may have had this one's id
        monkeypatch.setattr(SimpleRateThrottle, "THROTTLE_RATES", {"user": "1/minute"})
        client = shopper()
        answers = [order(client, key=key) for key in ("K1", "K2")]
        assert [answer.status_code for answer in answers] == [201, 429]
        assert answers[1].json()["code"] == "throttled"
        assert "Retry-After" in answers[1]
        assert (IdempotencyRecord.objects.count(), Order.objects.count()) == (1, 1)
