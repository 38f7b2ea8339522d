import pytest
from django.core.exceptions import MultipleObjectsReturned

from idempotency.transitions import InvalidTransition
from orders.models import Order, OrderQuerySet, Status
from tests.shopping import counts, on_hand, order, sell, shopper

pytestmark = [pytest.mark.django_db, pytest.mark.urls("config.urls")]


@pytest.fixture(autouse=True)
def _tea():
    sell()


@pytest.fixture
def order_no():
    return order(shopper("alice"), ("TEA-100", 2)).json()["data"]["orderId"]


def cancel(client, order_no):
    return client.post(f"/api/orders/{order_no}/cancel")


class TestCancel:
    def test_cancels_and_gives_the_stock_back(self, order_no):
        answer = cancel(shopper("alice"), order_no)
        assert answer.status_code == 200
        assert answer.json()["message"] == "Order cancelled"
        assert answer.json()["data"]["status"] == "CANCELLED"
        assert answer.json()["data"]["isDuplicate"] is False
        assert on_hand() == 100
        assert Order.objects.get().cancelled_at is not None

    def test_gives_the_stock_back_once(self, order_no):
        """STK-07"""
        cancel(shopper("alice"), order_no)
        repeat = cancel(shopper("alice"), order_no)
        assert (repeat.status_code, repeat.json()["data"]["isDuplicate"]) == (200, True)
        assert repeat["Idempotent-Replayed"] == "true"
        assert on_hand() == 100

    def test_is_for_the_owner_and_staff(self, order_no):
        assert cancel(shopper("bob"), order_no).status_code == 404
        assert on_hand() == 98
        assert cancel(shopper("clerk", is_staff=True), order_no).status_code == 200

    @pytest.mark.parametrize("status", [Status.PAID, Status.SHIPPED, Status.REFUNDED])
    def test_refuses_what_has_gone_too_far(self, order_no, status):
        Order.objects.update(status=status)
        before = counts()
        answer = cancel(shopper("alice"), order_no)
        assert (answer.status_code, answer.json()["code"]) == (409, "invalid_transition")
        assert (counts(), on_hand(), Order.objects.get().status) == (before, 98, status)


class TestTransition:
    @pytest.fixture(autouse=True)
    def _order(self, order_no):
        self.rows = Order.objects.filter(order_no=order_no)

    def test_moves_once_and_sets_values_with_the_move(self):
        assert self.rows.transition(to=Status.PAID) is True
        assert self.rows.transition(to=Status.PAID, cart_id="other") is False
        assert self.rows.get().cart_id == "67890"

    def test_refuses_a_move_that_is_not_declared(self):
        with pytest.raises(InvalidTransition) as refusal:
            self.rows.transition(to=Status.SHIPPED)
        assert (refusal.value.source, refusal.value.target) == ("PENDING", "SHIPPED")
        assert self.rows.get().status == Status.PENDING

    def test_refuses_a_state_that_nothing_leads_to(self):
        with pytest.raises(ValueError, match="no move to 'PENDING'"):
            self.rows.transition(to=Status.PENDING)

    def test_needs_a_row(self):
        with pytest.raises(Order.DoesNotExist):
            Order.objects.none().transition(to=Status.PAID)

    def test_moves_one_row_or_none(self):
        order(shopper("alice"))
        with pytest.raises(MultipleObjectsReturned):
            Order.objects.all().transition(to=Status.PAID)

    def test_every_status_is_declared(self):
        moves = OrderQuerySet.moves
        assert set(moves).union(*moves.values()) == set(Status)
