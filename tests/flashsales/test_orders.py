"""A ticket becomes one order, or comes to nothing: never both, and never twice."""

from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction

from flashsales import tasks
from flashsales.models import FlashSale, Status, Ticket
from idempotency.transitions import InvalidTransition
from orders.models import Order
from stock.models import StockMovement
from tests.flashsales.selling import buy, closing, counts, open_sale, work
from tests.shopping import at_once, on_hand

pytestmark = pytest.mark.django_db(transaction=True)


class TestOrder:
    def test_is_made_with_its_stock(self):
        open_sale(stock=5)
        ticket = work(buy().number)
        order = Order.objects.get()
        assert (ticket.status, ticket.order) == (Status.CREATED, order)
        assert (order.user, order.amount) == (ticket.user, "19.90")
        assert list(order.lines.values_list("sku", "quantity")) == [("TEA-100", 1)]
        assert on_hand() == 4

    def test_is_made_once(self):
        open_sale(stock=5)
        number = buy().number
        assert work(number).order == work(number).order
        assert (Order.objects.count(), on_hand()) == (1, 4)

    def test_is_made_once_by_many_at_once(self):
        open_sale(stock=5)
        number = buy().number
        made = at_once(6, closing(lambda _: work(number).order_id))
        assert made == [Order.objects.get().pk] * 6
        assert (on_hand(), StockMovement.objects.count()) == (4, 1)

    def test_is_made_once_for_a_message_and_for_its_ticket(self):
        open_sale(stock=5)
        number, message = str(buy().number), str(uuid4())
        results = [
            tasks.create_order(message_id=one, ticket=number) for one in (message, message, str(uuid4()))
        ]
        assert results == ["CREATED"] * 3
        assert (Order.objects.count(), on_hand()) == (1, 4)

    def test_of_an_unknown_ticket_is_an_error(self):
        open_sale()
        before = counts()
        with pytest.raises(Ticket.DoesNotExist):
            work(uuid4())
        assert counts() == before


class TestOutOfStock:
    def test_comes_to_nothing_and_frees_the_unit(self):
        open_sale(units=1, stock=0)
        ticket = work(buy().number)
        assert (ticket.status, ticket.order) == (Status.SOLD_OUT, None)
        assert (Order.objects.count(), StockMovement.objects.count(), on_hand()) == (0, 0, 0)
        assert FlashSale.objects.get().sold == 0

    def test_frees_the_unit_once(self):
        open_sale(units=2, stock=1)
        work(buy("alice").number)
        number = buy("bob").number
        at_once(4, closing(lambda _: work(number)))
        assert FlashSale.objects.get().sold == 1

    def test_lets_somebody_else_buy_when_there_is_stock_again(self):
        open_sale(units=1, stock=0)
        work(buy("alice").number)
        assert buy("bob").status == Status.QUEUED
        assert FlashSale.objects.get().sold == 1


class TestNeverUnsaid:
    def test_an_order_that_was_made(self):
        open_sale()
        work(buy().number)
        with pytest.raises(InvalidTransition):
            Ticket.objects.all().transition(to=Status.SOLD_OUT)
        assert Ticket.objects.get().status == Status.CREATED

    @pytest.mark.parametrize(
        "change", [{"status": Status.CREATED}, {"status": Status.SOLD_OUT, "order_id": 1}], ids=str
    )
    def test_a_status_that_does_not_fit_is_refused_by_the_database(self, change):
        open_sale()
        work(buy("alice").number)
        bob = Ticket.objects.filter(pk=buy("bob").pk)
        if "order_id" in change:
            Ticket.objects.filter(status=Status.CREATED).update(status=Status.QUEUED, order=None)
            change = {**change, "order_id": Order.objects.get().pk}
        with pytest.raises(IntegrityError), transaction.atomic():
            bob.update(**change)
        assert bob.get().status == Status.QUEUED

    @pytest.mark.parametrize("change", [{"sold": 4}, {"units": 0}], ids=str)
    def test_more_than_there_are_is_refused_by_the_database(self, change):
        open_sale(units=3)
        with pytest.raises(IntegrityError), transaction.atomic():
            FlashSale.objects.update(**change)
        assert FlashSale.objects.get().sold == 0
