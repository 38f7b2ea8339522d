"""The wire: a ticket at once, the order a moment later, and the same answer for a repeat."""

import pytest

from flashsales.models import FlashSale, Ticket
from idempotency.models import IdempotencyRecord, OutboxMessage
from tests.flashsales.selling import (
    HOUR,
    SKU,
    another_sale,
    counts,
    end,
    open_sale,
    post,
    refusal,
    user_id,
    work,
)
from tests.shopping import on_hand, shopper

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("either")]


def show(client, ticket):
    return client.get(f"/api/flash-sales/tickets/{ticket}")


class TestFirst:
    def test_gets_a_ticket(self):
        open_sale()
        answer = post(shopper())
        ticket = Ticket.objects.get()
        assert (answer.status_code, answer.json()["code"]) == (202, 202)
        assert answer.json()["data"] == {
            "ticket": str(ticket.number),
            "status": "queued",
            "isDuplicate": False,
            "createdAt": answer.json()["data"]["createdAt"],
        }
        assert answer["Location"] == f"/api/flash-sales/tickets/{ticket.number}"
        assert "Idempotent-Replayed" not in answer

    def test_is_committed_with_record_and_message(self):
        open_sale()
        post(shopper())
        message = OutboxMessage.objects.get()
        assert IdempotencyRecord.objects.get().operation == "flashsales.order"
        assert message.topic == "flashsales.admitted"
        assert str(Ticket.objects.get().number) in message.payload
        assert FlashSale.objects.get().sold == 1
        assert on_hand() == 100  # the worker's to take

    def test_speaks_chinese(self):
        open_sale()
        answer = shopper().post(
            f"/api/flash-sales/{SKU}/orders",
            headers={"Idempotency-Key": "k", "Accept-Language": "zh-hans"},
        )
        assert answer.json()["message"] == "已进入排队，正在为您生成订单"


class TestRepeat:
    def test_gets_the_same_ticket(self):
        open_sale()
        alice = shopper()
        first, before = post(alice, "k"), counts()
        again = post(alice, "k")
        assert again.status_code == 200
        assert again["Idempotent-Replayed"] == "true"
        assert again.json()["data"] == {**first.json()["data"], "isDuplicate": True}
        assert counts() == before

    def test_gets_the_same_ticket_although_all_is_sold(self):
        open_sale(units=1)
        alice = shopper()
        first = post(alice, "k").json()["data"]
        assert refusal(post(shopper("bob"))) == (409, "insufficient_stock")
        assert post(alice, "k").json()["data"] == {**first, "isDuplicate": True}

    def test_is_told_what_became_of_the_ticket(self):
        open_sale()
        alice = shopper()
        post(alice, "k")
        order_no = work().order.order_no
        again = post(alice, "k").json()["data"]
        assert (again["status"], again["orderId"]) == ("created", order_no)

    def test_gets_the_same_ticket_when_the_record_is_gone(self):
        open_sale()
        alice = shopper()
        first, before = post(alice, "k").json()["data"], counts()
        IdempotencyRecord.objects.all().delete()
        again = post(alice, "k")
        assert (again.status_code, again.json()["data"]) == (200, {**first, "isDuplicate": True})
        assert counts() == before

    def test_with_another_body_is_refused(self):
        open_sale()
        alice = shopper()
        post(alice, "k")
        before = counts()
        assert refusal(post(alice, "k", body={"quantity": 1})) == (422, "idempotency_key_reused")
        assert counts() == before


class TestRefusal:
    def test_of_a_second_purchase(self):
        open_sale()
        alice = shopper()
        post(alice)
        before = counts()
        assert refusal(post(alice)) == (409, "already_bought")
        assert counts() == before

    def test_of_a_second_purchase_comes_before_sold_out(self):
        open_sale(units=1)
        alice = shopper()
        post(alice)
        assert refusal(post(alice)) == (409, "already_bought")

    def test_when_all_is_sold(self):
        open_sale(units=1)
        post(shopper())
        before = counts()
        assert refusal(post(shopper("bob"))) == (409, "insufficient_stock")
        assert counts() == before

    def test_of_whose_ticket_came_to_nothing(self):
        open_sale(stock=0)
        alice = shopper()
        post(alice)
        work()
        before = counts()
        assert refusal(post(alice)) == (409, "insufficient_stock")
        assert counts() == before

    def test_of_an_unknown_sale(self):
        open_sale()
        before = counts()
        assert refusal(post(shopper(), sku="CUP-010")) == (404, "not_found")
        assert counts() == before

    def test_before_the_sale_begins(self):
        open_sale(begins_in=HOUR)
        before = counts()
        assert refusal(post(shopper())) == (409, "sale_not_begun")
        assert counts() == before

    def test_after_the_sale_has_ended(self):
        end(open_sale())
        before = counts()
        assert refusal(post(shopper())) == (409, "sale_ended")
        assert counts() == before

    @pytest.mark.parametrize(
        ("key", "code"), [("", "idempotency_key_missing"), ("a,b", "idempotency_key_invalid")]
    )
    def test_of_a_bad_key(self, key, code):
        open_sale()
        before = counts()
        assert refusal(post(shopper(), key)) == (400, code)
        assert counts() == before

    @pytest.mark.parametrize("quantity", [0, 2, "1", True])
    def test_of_another_quantity_than_one_takes_nothing(self, quantity):
        open_sale(units=1)
        alice, before = shopper(), counts()
        assert refusal(post(alice, body={"quantity": quantity})) == (400, "invalid")
        assert counts() == before
        assert post(alice).status_code == 202  # what was set aside is there again

    def test_of_a_stranger(self, client):
        open_sale()
        before = counts()
        assert post(client).status_code == 401
        assert counts() == before


class TestTicket:
    def test_is_shown_to_its_owner_alone(self):
        open_sale()
        number = post(shopper()).json()["data"]["ticket"]
        assert show(shopper(), number).json()["data"]["status"] == "queued"
        assert refusal(show(shopper("bob"), number)) == (404, "not_found")

    def test_names_its_order(self):
        open_sale()
        number = post(shopper()).json()["data"]["ticket"]
        order_no = work(number).order.order_no
        data = show(shopper(), number).json()["data"]
        assert (data["status"], data["orderId"]) == ("created", order_no)
        assert shopper().get(f"/api/orders/{order_no}").status_code == 200

    def test_tells_that_it_came_to_nothing(self):
        open_sale(stock=0)
        number = post(shopper()).json()["data"]["ticket"]
        work(number)
        data = show(shopper(), number).json()["data"]
        assert data["status"] == "sold_out"
        assert "orderId" not in data


class TestNextSale:
    def test_lets_the_same_user_buy_again(self):
        first = open_sale()
        alice = shopper()
        post(alice)
        end(first)
        second = another_sale(begins_in=HOUR * 0)
        assert post(alice).status_code == 202
        bought = list(Ticket.objects.order_by("pk").values_list("sale", "user"))
        assert bought == [(first.pk, user_id("alice")), (second.pk, user_id("alice"))]
