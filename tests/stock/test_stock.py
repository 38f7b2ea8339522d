import random
from collections import Counter

import pytest
from django.db import IntegrityError, connections, transaction

from stock.exceptions import DeductionDiffers, InsufficientStock, StockChanged
from stock.models import Deduction, Kind, StockItem, StockMovement
from stock.strategies import STRATEGIES
from tests.shopping import at_once, on_hand


@pytest.fixture
def tea(db):
    StockItem.objects.recount(sku="TEA-100", on_hand=100)
    return StockItem.objects


class TestDeduct:
    def test_takes_once_for_a_reference(self, tea):
        """STK-03"""
        taken = [tea.deduct(sku="TEA-100", quantity=2, reference="order:1") for _ in range(2)]
        assert taken == [
            Deduction(remaining=98, version=1, is_duplicate=False),
            Deduction(remaining=98, version=1, is_duplicate=True),
        ]
        assert (on_hand(), tea.get().version) == (98, 1)
        assert StockMovement.objects.get().quantity == 2

    def test_repeats_although_the_stock_is_gone_since(self, tea):
        tea.deduct(sku="TEA-100", quantity=2, reference="order:1")
        tea.deduct(sku="TEA-100", quantity=98, reference="order:2")
        again = tea.deduct(sku="TEA-100", quantity=2, reference="order:1")
        assert again == Deduction(remaining=0, version=2, is_duplicate=True)
        assert (on_hand(), StockMovement.objects.count()) == (0, 2)

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


@pytest.mark.parametrize("strategy", STRATEGIES)
class TestEachStrategy:
    @pytest.fixture(autouse=True)
    def chosen(self, settings, strategy):
        settings.STOCK_STRATEGY = strategy

    def test_takes_what_is_there_and_says_what_is_left(self, tea):
        taken = [tea.deduct(sku="TEA-100", quantity=50, reference=f"order:{number}") for number in range(2)]
        assert [(each.remaining, each.version) for each in taken] == [(50, 1), (0, 2)]
        assert (on_hand(), tea.get().version) == (0, 2)

    @pytest.mark.parametrize("sku", ["TEA-100", "NO-SUCH"])
    def test_takes_nothing_when_it_runs_short(self, tea, sku):
        with pytest.raises(InsufficientStock):
            tea.deduct(sku=sku, quantity=101, reference="order:1")
        assert (on_hand(), tea.get().version, StockMovement.objects.count()) == (100, 0, 0)

    def test_takes_nothing_at_an_outdated_version(self, tea):
        tea.deduct(sku="TEA-100", quantity=1, reference="order:1", version=0)
        with pytest.raises(StockChanged):
            tea.deduct(sku="TEA-100", quantity=1, reference="order:2", version=0)
        assert (on_hand(), tea.get().version, StockMovement.objects.count()) == (99, 1, 1)

    @pytest.mark.parametrize("version", [0, 7])
    def test_is_short_at_any_version(self, tea, version):
        with pytest.raises(InsufficientStock):
            tea.deduct(sku="TEA-100", quantity=101, reference="order:1", version=version)
        assert (on_hand(), tea.get().version, StockMovement.objects.count()) == (100, 0, 0)

    def test_repeats_at_an_outdated_version(self, tea):
        for is_duplicate in (False, True):
            taken = tea.deduct(sku="TEA-100", quantity=1, reference="order:1", version=0)
            assert taken == Deduction(remaining=99, version=1, is_duplicate=is_duplicate)


def test_refuses_a_strategy_that_is_none(tea):
    with pytest.raises(ValueError, match="pessimistic"):
        tea.deduct(sku="TEA-100", quantity=1, reference="order:1", strategy="pessimistic")
    assert (on_hand(), StockMovement.objects.count()) == (100, 0)


@pytest.mark.django_db(transaction=True, databases="__all__")
class TestRaces:
    def test_one_reference_takes_once(self, database):
        """STK-03"""
        StockItem.objects.using(database).recount(sku="TEA-100", on_hand=100)
        taken = self.race(8, database, lambda _: self.take(database, quantity=2, reference="order:1"))
        assert Counter(taken) == {"taken": 1, "taken before": 7}
        assert self.left(database) == {"TEA-100": 98}

    def test_one_reference_is_refused_to_all_who_ask_at_once(self, database):
        """The line vanishes with its transaction, and all who waited for it want its place."""
        StockItem.objects.using(database).recount(sku="TEA-100", on_hand=1)
        taken = self.race(8, database, lambda _: self.take(database, quantity=2, reference="order:1"))
        assert Counter(taken) == {"InsufficientStock": 8}
        assert self.left(database) == {"TEA-100": 1}
        assert StockMovement.objects.using(database).count() == 0

    @pytest.mark.parametrize("strategy", STRATEGIES)
    def test_several_articles_in_any_order_do_not_deadlock(self, database, strategy):
        """STK-05"""
        skus = ["A", "B", "C"]
        for sku in skus:
            StockItem.objects.using(database).recount(sku=sku, on_hand=1000)

        def take_all(number):
            chance = random.Random(number)
            for turn in range(10):
                quantities = dict.fromkeys(chance.sample(skus, 3), 1)
                StockItem.objects.using(database).deduct_all(
                    quantities=quantities, reference=f"order:{number}-{turn}", strategy=strategy
                )

        self.race(8, database, take_all)
        assert self.left(database) == dict.fromkeys(skus, 920)

    def take(self, database, *, quantity, reference):
        try:
            deduction = StockItem.objects.using(database).deduct(
                sku="TEA-100", quantity=quantity, reference=reference
            )
            return "taken before" if deduction.is_duplicate else "taken"
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
