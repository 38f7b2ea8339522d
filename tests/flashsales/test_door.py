"""The door: most of a crowd never reaches the database, and a gate that errs costs nobody a unit for long."""

from contextlib import suppress

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from flashsales import door, gate, services
from flashsales.exceptions import AlreadyBought
from flashsales.gate import Verdict
from flashsales.models import FlashSale, Ticket
from idempotency.exceptions import StoreUnavailable
from idempotency.testing import Crash, crash_at
from stock.exceptions import InsufficientStock
from tests.flashsales.selling import (
    HOUR,
    LONG_AGO,
    SKU,
    buy,
    counts,
    end,
    left,
    open_sale,
    post,
    refusal,
    user_id,
    work,
)
from tests.shopping import sell, shopper

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("gated")]


def known(name):
    """A client whose authentication asks nothing."""
    client = APIClient()
    shopper(name)
    client.force_authenticate(get_user_model().objects.get(username=name))
    return client


@pytest.fixture
def queries():
    return lambda: CaptureQueriesContext(connection)


class TestRefusalAtTheDoor:
    def test_of_what_is_sold_asks_no_database(self, queries):
        open_sale(units=1)
        post(shopper())
        bob = known("bob")
        with queries() as asked:
            answer = post(bob)
        assert refusal(answer) == (409, "insufficient_stock")
        assert len(asked) == 0

    def test_of_a_second_purchase_asks_no_database(self, queries):
        open_sale()
        alice = known("alice")
        post(alice)
        with queries() as asked:
            answer = post(alice)
        assert refusal(answer) == (409, "already_bought")
        assert len(asked) == 0

    def test_before_the_sale_asks_no_database(self, queries):
        open_sale(begins_in=HOUR)
        alice = known("alice")
        with queries() as asked:
            answer = post(alice)
        assert refusal(answer) == (409, "sale_not_begun")
        assert len(asked) == 0

    def test_of_whose_ticket_came_to_nothing_asks_no_database(self, queries):
        open_sale(stock=0)
        alice = known("alice")
        post(alice)
        work()
        with queries() as asked:
            answer = post(alice)
        assert refusal(answer) == (409, "insufficient_stock")
        assert len(asked) == 0


class TestCount:
    def test_goes_with_the_tickets(self):
        open_sale(units=3)
        assert left() == 3
        buy("alice")
        assert left() == 2
        buy("bob")
        assert left() == 1

    def test_is_not_touched_by_repeats(self):
        open_sale(units=3)
        assert buy(key="k") == buy(key="k")
        assert left() == 2

    def test_rises_when_a_ticket_comes_to_nothing(self):
        open_sale(units=3, stock=0)
        work(buy().number)
        assert left() == 3
        assert FlashSale.objects.get().sold == 0

    def test_does_not_fall_when_word_of_a_ticket_comes_after_its_end(self):
        sale = open_sale(units=3, stock=0)
        ticket = work(buy().number)
        gate.record(sale=sale, user_id=ticket.user_id, mark=ticket.mark, holds_unit=True)
        assert left() == 3


class TestFailure:
    def test_gives_the_unit_back(self):
        open_sale(units=1)
        alice, before = shopper(), counts()
        with pytest.raises(Crash), crash_at("before_commit"):
            post(alice, "k")
        assert (left(), counts()) == (1, before)
        assert post(shopper("bob")).status_code == 202
        assert refusal(post(alice, "k")) == (409, "insufficient_stock")

    def test_gives_the_unit_back_once(self):
        open_sale(units=2)
        admitted = gate.admit(sku=SKU, user_id=user_id("alice"), mark="aa")
        for _ in range(3):
            gate.give_back(admitted)
        assert left() == 2

    def test_does_not_give_back_what_another_attempt_took(self):
        open_sale(units=2)
        alice = user_id("alice")
        first = gate.admit(sku=SKU, user_id=alice, mark="aa")
        gate.give_back(first)
        gate.admit(sku=SKU, user_id=alice, mark="aa")
        gate.give_back(first)
        assert left() == 1

    def test_keeps_the_unit_while_the_commit_is_in_doubt(self):
        open_sale(units=2)
        with pytest.raises(StoreUnavailable), door.passed(sku=SKU, user_id=user_id("alice"), mark="aa"):
            raise StoreUnavailable(HOUR)
        assert left() == 1

    def test_is_not_given_back_when_a_twin_has_bought_meanwhile(self):
        """The first attempt fails when its repeat, which the gate lets pass, has committed."""
        open_sale(units=2)
        alice, mark = user_id("alice"), door.mark_of("k")
        with suppress(RuntimeError), door.passed(sku=SKU, user_id=alice, mark=mark):
            buy("alice", "k")
            raise RuntimeError
        assert left() == 1


class TestUndecided:
    def test_second_key_of_a_dead_attempt_buys(self):
        """Nobody is locked out by a process that died between gate and commit."""
        open_sale(units=2)
        gate.admit(sku=SKU, user_id=user_id("alice"), mark="aa")
        assert buy("alice", "another").user_id == user_id("alice")
        assert left() == 1

    def test_twin_is_refused_by_the_database(self, gated):
        open_sale(units=2)
        ticket = buy("alice", "first")
        with gated.client as client:  # as before the commit was told
            client.hset(gate._name(SKU), f"u:{ticket.user_id}", f"p:{LONG_AGO}:aa:bb")
        with pytest.raises(AlreadyBought):
            buy("alice", "second")
        assert (left(), Ticket.objects.count(), FlashSale.objects.get().sold) == (1, 1, 1)


class TestGateThatErrs:
    def test_missing_means_ask_the_database(self, gated):
        open_sale(units=1)
        gated.empty()
        assert gate.admit(sku=SKU, user_id=1, mark="aa").verdict is Verdict.MISSING
        assert post(shopper()).status_code == 202
        assert refusal(post(shopper("bob"))) == (409, "insufficient_stock")

    def test_missing_is_loaded_by_one_request_of_many(self, gated, monkeypatch):
        open_sale(units=5)
        gated.empty()
        loads, load = [], gate.load
        monkeypatch.setattr(gate, "load", lambda *args, **kwargs: loads.append(1) or load(*args, **kwargs))
        gate.may_refresh(SKU)  # another request is at it
        post(shopper("alice"))
        assert (loads, left()) == ([], None)
        gated.empty()
        post(shopper("bob"))
        post(shopper("carol"))
        assert (len(loads), left()) == (1, 2)

    def test_that_lets_too_many_in_oversells_nothing_and_is_put_right(self, gated):
        open_sale(units=1)
        post(shopper())
        with gated.client as client:
            client.hset(gate._name(SKU), "left", 50)
        before = counts()
        assert refusal(post(shopper("bob"))) == (409, "insufficient_stock")
        assert (left(), counts()) == (0, before)

    def test_that_is_away_costs_nothing_but_time(self, gated):
        open_sale(units=1)
        alice = shopper()
        with gated.away():
            first = post(alice, "k")
            assert first.status_code == 202
            assert post(alice, "k").json()["data"] == {**first.json()["data"], "isDuplicate": True}
            assert refusal(post(alice)) == (409, "already_bought")
            assert refusal(post(shopper("bob"))) == (409, "insufficient_stock")
        assert (FlashSale.objects.get().sold, Ticket.objects.count()) == (1, 1)

    def test_that_hangs_costs_nothing_but_time(self, gated):
        open_sale(units=1)
        with gated.hanging():
            assert post(shopper()).status_code == 202
            assert refusal(post(shopper("bob"))) == (409, "insufficient_stock")
        assert (FlashSale.objects.get().sold, Ticket.objects.count()) == (1, 1)

    def test_that_answered_too_late_has_counted_the_buyer_once(self, gated, monkeypatch):
        open_sale(units=2)
        admit = gate._run

        def lost(script, *args, otherwise):
            answer = admit(script, *args, otherwise=otherwise)
            return otherwise if otherwise is Verdict.UNKNOWN else answer

        monkeypatch.setattr(gate, "_run", lost)
        post(shopper())
        assert left() == 1
        with pytest.raises(RuntimeError), door.passed(sku=SKU, user_id=user_id("bob"), mark="bb"):
            raise RuntimeError
        assert left() == 1

    def test_of_an_ended_sale_is_gone(self, gated):
        sale = open_sale(units=1)
        end(sale)
        sale.refresh_from_db()
        gate.begin(sale)
        assert gated.names() in ([], [f"{gate._name(SKU)}:refresh".encode()])


class TestNoGate:
    def test_is_never_asked_inside_a_transaction(self, monkeypatch):
        asked = []
        run = gate._run

        def watched(*args, **kwargs):
            asked.append(connection.in_atomic_block)
            return run(*args, **kwargs)

        open_sale()
        monkeypatch.setattr(gate, "_run", watched)
        monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", "yes")
        assert post(shopper()).status_code == 202
        assert asked == [False, False]

    def test_of_an_article_without_a_sale_says_nothing(self):
        sell()
        assert gate.admit(sku=SKU, user_id=1, mark="aa").verdict is Verdict.MISSING
        with pytest.raises(FlashSale.DoesNotExist):
            buy()
        assert left() is None


def test_refuses_as_a_service_too():
    open_sale(units=1)
    buy("alice")
    with pytest.raises(InsufficientStock), door.passed(sku=SKU, user_id=user_id("bob"), mark="bb"):
        services.buy(sku=SKU, user_id=user_id("bob"), mark="bb", now=None)
