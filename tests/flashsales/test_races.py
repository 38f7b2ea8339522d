"""Many at the same moment, with the gate and without it: as many tickets as units, one for each user."""

from collections import Counter

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from flashsales import services
from flashsales.exceptions import AlreadyBought
from flashsales.models import FlashSale, Ticket
from idempotency import engine
from stock.exceptions import InsufficientStock
from tests.flashsales.selling import HOUR, SKU, closing, crowd, open_sale, post, refusal
from tests.shopping import at_once, shopper


def outcome(answer):
    return "queued" if answer.status_code in (200, 202) else refusal(answer)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("either")
class TestCrowd:
    def test_gets_as_many_tickets_as_units(self):
        open_sale(units=3)
        buyers = crowd(8)
        answers = at_once(8, closing(lambda index: outcome(post(buyers[index]))))
        assert Counter(answers) == {"queued": 3, (409, "insufficient_stock"): 5}
        assert (Ticket.objects.count(), FlashSale.objects.get().sold) == (3, 3)

    def test_of_one_user_under_many_keys_gets_one_ticket(self):
        open_sale(units=8)
        alice = shopper()
        answers = at_once(8, closing(lambda _: outcome(post(alice))))
        assert Counter(answers) == {"queued": 1, (409, "already_bought"): 7}
        assert (Ticket.objects.count(), FlashSale.objects.get().sold) == (1, 1)

    def test_of_one_user_under_one_key_gets_one_ticket(self):
        open_sale(units=8)
        alice = shopper()
        answers = at_once(8, closing(lambda _: post(alice, "k")))
        tickets = {answer.json()["data"]["ticket"] for answer in answers if answer.status_code < 300}
        busy = [refusal(answer) for answer in answers if answer.status_code >= 300]
        assert tickets == {str(Ticket.objects.get().number)}
        assert set(busy) <= {(409, "operation_in_progress")}
        assert FlashSale.objects.get().sold == 1


@pytest.mark.django_db(transaction=True)
def test_flushed_in_the_middle_nothing_is_oversold(gated):
    open_sale(units=5)
    buyers = crowd(16)

    def act(index):
        if index % 4 == 0:
            gated.empty()
        return outcome(post(buyers[index]))

    answers = at_once(16, closing(act))
    late = [outcome(post(buyer)) for buyer in buyers]
    assert set(answers + late) <= {"queued", (409, "insufficient_stock"), (409, "already_bought")}
    assert (answers + late).count("queued") == Ticket.objects.count() == FlashSale.objects.get().sold == 5


@pytest.mark.django_db(transaction=True, databases="__all__")
class TestEachDatabase:
    def test_sells_as_many_as_there_are(self, database):
        sale, users = self.sale(database, units=3, users=8)
        taken = at_once(8, closing(lambda index: self.buy(database, users[index], mark="aa")))
        assert Counter(taken) == {"bought": 3, "InsufficientStock": 5}
        assert self.sold(database, sale) == (3, 3)

    def test_sells_one_to_each_user(self, database):
        sale, users = self.sale(database, units=8, users=1)
        taken = at_once(8, closing(lambda index: self.buy(database, users[0], mark=f"{index:02x}")))
        assert Counter(taken) == {"bought": 1, "AlreadyBought": 7}
        assert self.sold(database, sale) == (1, 1)

    def sale(self, database, *, units, users):
        now = timezone.now()
        span = {"starts_at": now - HOUR, "ends_at": now + HOUR, "created_at": now}
        sale = FlashSale.objects.using(database).create(sku=SKU, units=units, **span)
        people = get_user_model().objects.using(database)
        return sale, [people.create(username=f"buyer-{number}").pk for number in range(users)]

    def buy(self, database, user_id, mark):
        def attempt():
            return services.buy(sku=SKU, user_id=user_id, mark=mark, now=timezone.now(), using=database)

        try:
            engine.rerun(attempt)
        except (AlreadyBought, InsufficientStock) as refused:
            return type(refused).__name__
        return "bought"

    def sold(self, database, sale):
        tickets = Ticket.objects.using(database).count()
        return tickets, FlashSale.objects.using(database).get(pk=sale.pk).sold
