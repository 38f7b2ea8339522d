import pytest
from django.db import (
    DataError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
    connection,
    transaction,
)
from rest_framework.exceptions import Throttled, ValidationError

from config.problems import exception_handler
from idempotency.exceptions import KeyMissing
from idempotency.transitions import InvalidTransition
from orders.exceptions import OrderNumberReused
from stock.exceptions import InsufficientStock


def answer(error, rf):
    return exception_handler(error, {"request": rf.post("/api/orders")})


def said_by_the_database(code, kind=OperationalError):
    """An error of Django's, with the driver's behind it."""
    error = kind("…")
    error.__cause__ = Exception(code, "…")
    if isinstance(code, str):
        error.__cause__.sqlstate = code
    return error


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

    @pytest.mark.django_db
    @pytest.mark.parametrize(
        "error",
        [
            RuntimeError(),
            OperationalError("the number of parameters must be between 0 and 65535"),
            said_by_the_database("53100"),  # disk full
            said_by_the_database("42P01", kind=ProgrammingError),  # no such table
            said_by_the_database("57P01", kind=DataError),
            said_by_the_database(1054),
        ],
    )
    def test_leaves_what_nobody_expected_to_the_log(self, error, rf):
        connection.ensure_connection()
        assert answer(error, rf) is None

    @pytest.mark.django_db
    @pytest.mark.parametrize(
        "error",
        [said_by_the_database(state) for state in ("57P01", "57P02", "57P03", "08006", "08000")]
        + [said_by_the_database(number) for number in (2006, 2013, 1927)]
        + [said_by_the_database(0, kind=InterfaceError)],
    )
    def test_says_that_a_lost_connection_leaves_it_to_a_repeat(self, error, rf, caplog):
        connection.ensure_connection()
        response = answer(error, rf)
        assert (response.status_code, response["Retry-After"]) == (503, "1")
        assert b'"code": "store_unavailable"' in response.content
        assert [record.levelname for record in caplog.records] == ["WARNING"]
