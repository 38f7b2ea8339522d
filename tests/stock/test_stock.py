import random
from collections import Counter

import pytest
from django.db import IntegrityError, connections, transaction

from stock.exceptions import DeductionDiffers, InsufficientStock
from stock.models import Kind, StockItem, StockMovement
from tests.shopping import at_once, on_hand, shopper


@pytest.fixture
def tea(db):
    StockItem.objects.recount(sku="TEA-100", on_hand=100)
    return StockItem.objects


class TestDeduct:
    def test_takes_once_for_a_reference(self, tea):
        """STK-03"""
        taken = [tea.deduct(sku="TEA-100", quantity=2, reference="order:1") for _ in range(2)]
        assert taken == [True, False]
        assert (on_hand(), tea.get().version) == (98, 1)
        assert StockMovement.objects.get().quantity == 2

    def test_leaves_the_transaction_usable_when_repeated(self, tea):
        with transaction.atomic():
            tea.deduct(sku="TEA-100", quantity=2, reference="order:1")
            tea.deduct(sku="TEA-100", quantity=2, reference="order:1")
            tea.deduct(sku="TEA-100", quantity=1, reference="order:2")
        assert on_hand() == 97

    def test_refuses_another_quantity_for_the_same_reference(self, tea):
        tea.deduct(sku="TEA-100", quantity=2, reference="order:1")
        with pytest.raises(DeductionDiffers):
            tea.deduct(sku="TEA-100", quantity=3, reference="order:1")
        assert on_hand() == 98

    @pytest.mark.parametrize("sku", ["TEA-100", "NO-SUCH"])
    def test_takes_nothing_when_it_runs_short(self, tea, sku):
        with pytest.raises(InsufficientStock):
            tea.deduct(sku=sku, quantity=101, reference="order:1")
        assert (on_hand(), tea.get().version, StockMovement.objects.count()) == (100, 0, 0)

    @pytest.mark.parametrize("quantity", [-3, 0, 1.5, 1.0, "2", None, 10**20, True])
    def test_refuses_odd_quantities(self, tea, quantity):
        """STK-10"""
        with pytest.raises(ValueError, match="quantity"):
            tea.deduct(sku="TEA-100", quantity=quantity, reference="order:1")
        assert (on_hand(), StockMovement.objects.count()) == (100, 0)

    def test_takes_all_of_several_or_none(self, tea):
        """STK-04"""
        tea.recount(sku="CUP-010", on_hand=0)
        with pytest.raises(InsufficientStock):
            tea.deduct_all(quantities={"TEA-100": 1, "CUP-010": 1}, reference="order:1")
        tea.recount(sku="TEA-200", on_hand=0)
        with pytest.raises(InsufficientStock):
            tea.deduct_all(quantities={"TEA-100": 1, "TEA-200": 1}, reference="order:1")
        assert (on_hand(), StockMovement.objects.count()) == (100, 0)


class TestRestore:
    def test_gives_back_what_was_taken_once(self, tea):
        """STK-07"""
        tea.deduct(sku="TEA-100", quantity=2, reference="order:1")
        given = [tea.restore(sku="TEA-100", reference="order:1") for _ in range(2)]
        assert given == [True, False]
        assert (on_hand(), tea.get().version) == (100, 2)

    def test_refuses_what_was_never_taken(self, tea):
        with pytest.raises(StockMovement.DoesNotExist):
            tea.restore(sku="TEA-100", reference="order:1")
        assert on_hand() == 100

    def test_gives_back_all_of_a_reference(self, tea):
        tea.recount(sku="CUP-010", on_hand=5)
        tea.deduct_all(quantities={"TEA-100": 1, "CUP-010": 5}, reference="order:1")
        tea.deduct(sku="TEA-100", quantity=7, reference="order:2")
        tea.restore_all(reference="order:1")
        assert (on_hand(), on_hand("CUP-010")) == (93, 5)


class TestConstraints:
    def test_never_negative(self, tea):
        with pytest.raises(IntegrityError), transaction.atomic():
            tea.update(on_hand=-1)

    def test_ledger_has_no_line_below_one(self, tea):
        with pytest.raises(IntegrityError), transaction.atomic():
            StockMovement.objects.record(sku="TEA-100", reference="order:1", kind=Kind.DEDUCTED, quantity=0)


@pytest.mark.django_db(transaction=True, databases="__all__")
class TestRaces:
    def test_one_reference_takes_once(self, database):
        """STK-03"""
        StockItem.objects.using(database).recount(sku="TEA-100", on_hand=100)
        taken = self.race(8, database, lambda _: self.take(database, quantity=2, reference="order:1"))
        assert Counter(taken) == {True: 1, False: 7}
        assert self.left(database) == {"TEA-100": 98}

    def test_no_deduction_is_lost_and_nothing_is_oversold(self, database):
        """STK-01, STK-02"""
        StockItem.objects.using(database).recount(sku="TEA-100", on_hand=10)
        taken = self.race(16, database, lambda n: self.take(database, quantity=1, reference=f"order:{n}"))
        assert Counter(taken) == {True: 10, "InsufficientStock": 6}
        assert self.left(database) == {"TEA-100": 0}
        assert StockMovement.objects.using(database).count() == 10

    def test_several_articles_in_any_order_do_not_deadlock(self, database):
        """STK-05"""
        skus = ["A", "B", "C"]
        for sku in skus:
            StockItem.objects.using(database).recount(sku=sku, on_hand=1000)

        def take_all(number):
            chance = random.Random(number)
            for turn in range(10):
                quantities = dict.fromkeys(chance.sample(skus, 3), 1)
                StockItem.objects.using(database).deduct_all(
                    quantities=quantities, reference=f"order:{number}-{turn}"
                )

        self.race(8, database, take_all)
        assert self.left(database) == dict.fromkeys(skus, 920)

    def take(self, database, *, quantity, reference):
        try:
            return StockItem.objects.using(database).deduct(
                sku="TEA-100", quantity=quantity, reference=reference
            )
        except InsufficientStock as error:
            return type(error).__name__

    def left(self, database):
        return dict(StockItem.objects.using(database).values_list("sku", "on_hand"))

    def race(self, number, database, act):
        def act_and_close(index):
            try:
                return act(index)
            finally:
                connections[database].close()

        return at_once(number, act_and_close)


@pytest.mark.django_db
@pytest.mark.urls("config.urls")
class TestView:
    def test_tells_what_is_on_hand(self, tea):
        answer = shopper().get("/api/stock/TEA-100")
        assert answer.json() == {
            "code": 200,
            "message": "Stock",
            "data": {"sku": "TEA-100", "remaining": 100, "version": 0},
        }

    def test_does_not_know_every_sku(self, tea):
        answer = shopper().get("/api/stock/NO-SUCH")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")

    def test_is_for_users(self, tea, client):
        answer = client.get("/api/stock/TEA-100")
        assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated")
