"""What no address and no body may do: a 500."""

from base64 import b64encode

import pytest

from tests.shopping import sell, shopper

pytestmark = [
    pytest.mark.postgresql,
    pytest.mark.django_db,
    pytest.mark.urls("config.urls"),
]


@pytest.fixture
def alice():
    sell()
    return shopper("alice")


@pytest.mark.parametrize("path", ["orders/%00", "orders/a%00b", "stock/%00"])
def test_a_nul_in_an_address_is_not_found(alice, path):
    assert alice.get(f"/api/{path}").status_code == 404


@pytest.mark.parametrize("action", ["cancel", "ship", "pay", "refunds"])
def test_a_nul_in_an_actions_address_is_not_found(alice, action):
    assert alice.post(f"/api/orders/a%00b/{action}", {}).status_code == 404


@pytest.mark.parametrize("cursor", ["p=abc", "p=", "p=1.5", "r=1&p=abc", "p=%00", "p=" + "9" * 30])
def test_a_cursor_of_no_key_is_not_found(alice, cursor):
    assert alice.get("/api/orders", {"cursor": b64encode(cursor.encode()).decode()}).status_code == 404


@pytest.mark.parametrize("headers", [{}, {"HTTP_IDEMPOTENCY_KEY": "k"}])
def test_json_nested_too_deeply_is_malformed(alice, headers):
    deep = b'{"cart_id":' + b"[" * 5000 + b"]" * 5000 + b"}"
    answer = alice.generic("POST", "/api/orders", deep, content_type="application/json", **headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "parse_error")
