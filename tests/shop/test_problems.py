import pytest
from django.db import OperationalError, connection, transaction
from rest_framework.exceptions import Throttled, ValidationError

from config.problems import exception_handler
from idempotency.exceptions import KeyMissing
from idempotency.transitions import InvalidTransition
from orders.exceptions import OrderNumberReused
from stock.exceptions import InsufficientStock


def answer(error, rf):
    return exception_handler(error, {"request": rf.post("/api/orders")})


class TestExceptionHandler:
    @pytest.mark.django_db
    @pytest.mark.parametrize(
        "error",
        [
            InsufficientStock("A"),
            InvalidTransition("A", "B"),
            OrderNumberReused("ORD1"),
            KeyMissing(),
            ValidationError("x"),
        ],
    )
    def test_rolls_back_the_request_that_is_one_transaction(self, error, rf, monkeypatch):
        """HTTP-07"""
        monkeypatch.setitem(connection.settings_dict, name="ATOMIC_REQUESTS", value=True)
        with transaction.atomic():
            assert answer(error, rf).status_code >= 400
            assert transaction.get_rollback()

    def test_keeps_when_to_come_again(self, rf):
        response = answer(Throttled(wait=3), rf)
        assert (response.status_code, response["Retry-After"]) == (429, "3")
        assert b'"code": "throttled"' in response.content

    def test_says_that_a_deadlock_can_be_repeated(self, rf):
        deadlock = OperationalError()
        deadlock.__cause__ = type("Deadlock", (Exception,), {"sqlstate": "40P01"})()
        response = answer(deadlock, rf)
        assert (response.status_code, response["Retry-After"]) == (409, "1")

    @pytest.mark.parametrize("error", [OperationalError("gone"), RuntimeError()])
    def test_leaves_what_nobody_expected_to_the_log(self, error, rf):
        assert answer(error, rf) is None
