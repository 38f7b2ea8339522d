"""Coupons and points: once for each order, whoever comes and in whatever order."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.contrib.auth import get_user_model
from django.db import connections
from django.utils import timezone

from rewards import services
from rewards.models import Balance, Coupon, PointsEntry

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def user_id() -> int:
    return get_user_model().objects.create_user("alice").pk


def grant(user_id: int, *, order_no: str = "ORD-1", campaign: str = "spring") -> tuple[Coupon, bool]:
    return services.grant_coupon(user_id=user_id, order_no=order_no, campaign=campaign, now=timezone.now())


def add(user_id: int, *, order_no: str = "ORD-1", points: int = 39) -> bool:
    return services.add_points(user_id=user_id, order_no=order_no, points=points, now=timezone.now())


def take_back(user_id: int, *, order_no: str = "ORD-1") -> int:
    return services.take_points_back(user_id=user_id, order_no=order_no, now=timezone.now())


def balance(user_id: int) -> int:
    return Balance.objects.get(user_id=user_id).points


def at_once(number: int, act) -> list:
    barrier = Barrier(number)

    def wait_and_act(index: int):
        try:
            barrier.wait(30)
            return act()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(wait_and_act, range(number)))


class TestCoupon:
    def test_is_granted_once_for_each_order_and_campaign(self, user_id: int) -> None:
        first, granted = grant(user_id)
        again, granted_again = grant(user_id)
        other, granted_other = grant(user_id, campaign="autumn")

        assert (granted, granted_again, granted_other) == (True, False, True)
        assert first == again != other
        assert Coupon.objects.count() == 2

    def test_is_one_for_sixteen_who_grant_it_at_once(self, user_id: int) -> None:
        answers = at_once(16, lambda: grant(user_id))

        assert sum(granted for _, granted in answers) == 1
        assert len({coupon.pk for coupon, _ in answers}) == 1
        assert Coupon.objects.count() == 1


class TestPoints:
    def test_are_added_once_for_each_order(self, user_id: int) -> None:
        assert [add(user_id), add(user_id), add(user_id, order_no="ORD-2", points=1)] == [True, False, True]
        assert balance(user_id) == 40

    def test_are_added_once_by_sixteen_at_once(self, user_id: int) -> None:
        assert sum(at_once(16, lambda: add(user_id))) == 1
        assert balance(user_id) == 39

    def test_of_eight_orders_at_once_all_count(self, user_id: int) -> None:
        numbers = iter(range(8))
        assert all(at_once(8, lambda: add(user_id, order_no=f"ORD-{next(numbers)}", points=5)))
        assert balance(user_id) == 40

    def test_are_taken_back_once(self, user_id: int) -> None:
        add(user_id)
        assert sum(at_once(8, lambda: take_back(user_id))) == 39
        assert balance(user_id) == 0

    def test_that_are_spent_are_not_taken_back(self, user_id: int) -> None:
        add(user_id)
        assert Balance.objects.deduct(user_id=user_id, points=30)
        assert take_back(user_id) == 9
        assert balance(user_id) == 0

    def test_taken_back_before_they_came_are_not_given(self, user_id: int) -> None:
        assert take_back(user_id) == 0
        assert add(user_id) is False
        assert balance(user_id) == 0
        assert PointsEntry.objects.count() == 2

    def test_given_and_taken_back_at_once_are_none_in_the_end(self, user_id: int) -> None:
        acts = iter([add, take_back] * 4)
        at_once(8, lambda: next(acts)(user_id))
        assert balance(user_id) == 0

    def test_that_are_not_there_cannot_be_deducted(self, user_id: int) -> None:
        add(user_id)
        assert not Balance.objects.deduct(user_id=user_id, points=40)
        assert balance(user_id) == 39


@pytest.mark.parametrize(
    ("amount_minor", "currency", "points"), [(3980, "CNY", 39), (99, "CNY", 0), (3980, "JPY", 39)]
)
def test_a_point_is_earned_for_each_whole_unit(amount_minor: int, currency: str, points: int) -> None:
    assert services.points_for(amount_minor=amount_minor, currency=currency) == points
