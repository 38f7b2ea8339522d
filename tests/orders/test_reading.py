import pytest

from tests.shopping import order, sell, shopper

pytestmark = [pytest.mark.django_db, pytest.mark.urls("config.urls")]


@pytest.fixture(autouse=True)
def _tea():
    sell()


class TestDetail:
    def test_is_the_data_of_create(self):
        client = shopper()
        made = order(client).json()["data"]
        answer = client.get(f"/api/orders/{made['orderId']}")
        assert (answer.status_code, answer.json()["data"]) == (200, made)

    def test_is_for_the_owner_and_staff(self):
        path = f"/api/orders/{order(shopper('alice')).json()['data']['orderId']}"
        stranger = shopper("bob").get(path)
        assert (stranger.status_code, stranger.json()["code"]) == (404, "not_found")
        assert stranger["Content-Type"] == "application/problem+json"
        assert shopper("clerk", is_staff=True).get(path).status_code == 200

    def test_ignores_an_idempotency_key(self):
        """HTTP-12"""
        client = shopper()
        order_no = order(client, key="K").json()["data"]["orderId"]
        client.post(f"/api/orders/{order_no}/cancel")
        answer = client.get(f"/api/orders/{order_no}", headers={"Idempotency-Key": "K"})
        assert answer.json()["data"]["status"] == "CANCELLED"
        assert "Idempotent-Replayed" not in answer


class TestList:
    def test_holds_ones_own_newest_first_in_pages(self):
        client = shopper("alice")
        made = [order(client).json()["data"] for _ in range(3)]
        order(shopper("bob"))

        page = client.get("/api/orders?page_size=2").json()
        rest = client.get(page["data"]["next"]).json()
        assert page["code"] == 200
        assert page["data"]["orders"] + rest["data"]["orders"] == made[::-1]
        assert rest["data"]["next"] is None

    def test_of_staff_holds_their_own(self):
        order(shopper("alice"))
        assert shopper("clerk", is_staff=True).get("/api/orders").json()["data"]["orders"] == []


class TestUnknownAddress:
    @pytest.mark.parametrize("path", ["/api/orders/", "/api/nothing", "/api", "/api/orders/ORD/pay/now"])
    def test_is_a_problem_too(self, path):
        answer = shopper().post(path)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert answer["Content-Type"] == "application/problem+json"

    def test_method_is_a_problem_too(self):
        answer = shopper().delete("/api/orders")
        assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
        assert answer["Allow"] == "GET, POST, HEAD, OPTIONS"
