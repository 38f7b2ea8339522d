"""Rivals who come between the look and the update, each time."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count

import pytest
from django.db import OperationalError, connections, transaction

from idempotency import dialects
from idempotency.exceptions import OperationInProgress
from stock.exceptions import InsufficientStock, StockBusy
from stock.models import Deduction, StockItem, StockMovement
from stock.strategies import ATTEMPTS, STRATEGIES
from tests.shopping import shopper
from tests.stock import SERVERS

pytestmark = pytest.mark.django_db(transaction=True, databases="__all__")

REPEATABLE_READ = {
    "postgresql": "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "mysql": "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
}

numbers = count(1)


@pytest.fixture
def items(database):
    StockItem.objects.using(database).recount(sku="TEA-100", on_hand=100)
    return StockItem.objects.using(database)


@pytest.fixture
def repeatable_read(database):
    connection = connections[database]
    with connection.cursor() as cursor:
        cursor.execute(REPEATABLE_READ[connection.vendor])
    yield
    connection.close()


def take(items, **demand):
    demand = {"sku": "TEA-100", "quantity": 1, "reference": f"rival:{next(numbers)}"} | demand
    return items.deduct(**demand)


def rival(items, **demand):
    """Take some on a connection of its own, and commit."""
    return elsewhere(items, partial(take, items, **demand))


def rival_restores(items, *, reference):
    return elsewhere(items, partial(items.restore, sku="TEA-100", reference=reference))


def elsewhere(items, act):
    def act_and_close():
        try:
            return act()
        finally:
            connections[items.db].close()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(act_and_close).result(30)


@contextmanager
def rivals_before_updates(items, times, **demand):
    """Let a rival be quicker than each of the first updates, or locks for one; yields what they took."""
    came = []

    def interfere(execute, sql, params, many, context):
        if "UPDATE" in sql and "stock_stockitem" in sql and len(came) < times:
            came.append(rival(items, **demand))
        return execute(sql, params, many, context)

    with connections[items.db].execute_wrapper(interfere):
        yield came


@pytest.mark.parametrize("vendor", SERVERS)
class TestOptimistic:
    def test_begins_again_when_a_rival_was_quicker(self, items):
        with rivals_before_updates(items, ATTEMPTS - 1) as came:
            deduction = take(items, strategy="optimistic")
        assert len(came) == ATTEMPTS - 1
        assert deduction == Deduction(remaining=100 - ATTEMPTS, version=ATTEMPTS, is_duplicate=False)
        assert (items.get().on_hand, items.get().version) == (100 - ATTEMPTS, ATTEMPTS)

    def test_is_busy_when_rivals_were_quicker_each_time(self, items):
        with rivals_before_updates(items, 100) as came, pytest.raises(StockBusy):
            take(items, strategy="optimistic", reference="order:1")
        assert len(came) == ATTEMPTS
        assert items.get().on_hand == 100 - ATTEMPTS
        assert not StockMovement.objects.using(items.db).filter(reference="order:1").exists()

    def test_is_short_when_rivals_took_the_last(self, items):
        with rivals_before_updates(items, 1, quantity=100), pytest.raises(InsufficientStock):
            take(items, strategy="optimistic")
        assert (items.get().on_hand, items.get().version) == (0, 1)

    def test_locks_within_a_transaction_that_it_cannot_begin_again(self, items):
        with rivals_before_updates(items, 1) as came, transaction.atomic(using=items.db):
            deduction = take(items, strategy="optimistic")
        assert len(came) == 1
        assert deduction == Deduction(remaining=98, version=2, is_duplicate=False)
        assert (items.get().on_hand, items.get().version) == (98, 2)


@pytest.mark.urls("config.urls")
@pytest.mark.parametrize("vendor", SERVERS[:1])
def test_a_busy_stock_tells_when_to_come_again(items, settings):
    settings.STOCK_STRATEGY = "optimistic"
    with rivals_before_updates(items, 100) as came:
        answer = shopper().post("/api/stock/TEA-100/deductions", {"order_no": "A1", "quantity": 1})
    assert (answer.status_code, answer.json()["code"], answer["Retry-After"]) == (409, "stock_busy", "1")
    assert (items.get().on_hand, len(came)) == (100 - ATTEMPTS, ATTEMPTS)
    assert StockMovement.objects.using(items.db).count() == ATTEMPTS


@pytest.mark.usefixtures("repeatable_read")
@pytest.mark.parametrize("vendor", SERVERS[1:])
@pytest.mark.parametrize("strategy", STRATEGIES)
class TestBehindASnapshotOfMariaDB:
    """A plain look shows what was there, an update or a locking look what is there."""

    def test_takes_from_what_is_there(self, items, strategy):
        with self.snapshot(items):
            rival(items, quantity=40)
            assert take(items, strategy=strategy) == Deduction(remaining=59, version=2, is_duplicate=False)
        assert (items.get().on_hand, items.get().version) == (59, 2)

    def test_is_short_of_what_is_not_there_any_more(self, items, strategy):
        with self.snapshot(items):
            rival(items, quantity=100)
            with pytest.raises(InsufficientStock):
                take(items, strategy=strategy)
        assert (items.get().on_hand, items.get().version) == (0, 1)

    def test_takes_what_has_come_since(self, items, strategy):
        take(items, quantity=100, reference="order:1")
        with self.snapshot(items, on_hand=0):
            rival_restores(items, reference="order:1")
            assert take(items, strategy=strategy) == Deduction(remaining=99, version=3, is_duplicate=False)

    def test_repeats_what_is_there(self, items, strategy):
        with self.snapshot(items):
            rival(items, reference="order:1", quantity=2)
            again = take(items, reference="order:1", quantity=2, strategy=strategy)
        assert again == Deduction(remaining=98, version=1, is_duplicate=True)
        assert (items.get().on_hand, items.get().version) == (98, 1)

    @contextmanager
    def snapshot(self, items, on_hand=100):
        with transaction.atomic(using=items.db):
            assert items.get().on_hand == on_hand
            yield


@pytest.mark.usefixtures("repeatable_read")
@pytest.mark.parametrize("vendor", SERVERS[:1])
@pytest.mark.parametrize("strategy", STRATEGIES)
class TestBehindASnapshotOfPostgreSQL:
    """There is no looking past it: whoever began the transaction begins it again."""

    def test_takes_nothing(self, items, strategy):
        with transaction.atomic(using=items.db):
            assert items.get().on_hand == 100
            rival(items)
            with pytest.raises(OperationalError) as error:
                take(items, strategy=strategy)
        assert dialects.is_conflict(error.value)
        assert (items.get().on_hand, items.get().version) == (99, 1)

    def test_says_that_a_repeat_can_come_again(self, items, strategy):
        with transaction.atomic(using=items.db):
            assert items.get().on_hand == 100
            rival(items, reference="order:1")
            with pytest.raises(OperationInProgress):
                take(items, reference="order:1", strategy=strategy)
        assert take(items, reference="order:1").is_duplicate

    def test_begins_its_own_transaction_again(self, items, strategy):
        with rivals_before_updates(items, 2) as came:
            assert take(items, strategy=strategy).remaining == 97
        assert len(came) == 2
        assert (items.get().on_hand, items.get().version) == (97, 3)
