"""Over real HTTP, on each database, with two worker processes."""

from collections import Counter
from uuid import uuid4

import pytest

from tests.shopping import at_once, http_client, request_body

REFUSED_FOR_NOW = {(409, "operation_in_progress")}


@pytest.fixture(params=["0", "1"], ids=["autocommit", "atomic-requests"])
def server(request, serve, vendor):
    return serve(database=vendor, env={"ATOMIC_REQUESTS": request.param})


def post(server, *, key=None, token="demo-alice", **members):
    headers = {"Idempotency-Key": key} if key else {}
    with http_client(server.url, token) as client:
        answer = client.post("/api/orders", json=request_body(**members), headers=headers)
    return answer.status_code, answer.json()


def counted(server, *, sku="TEA-100"):
    orders = server.scalar("SELECT COUNT(*) FROM orders_order")
    movements = server.scalar("SELECT COUNT(*) FROM stock_stockmovement")
    on_hand = server.scalar(f"SELECT on_hand FROM stock_stockitem WHERE sku = '{sku}'")
    return orders, movements, on_hand


class TestOneClientOrderNumber:
    """ORD-02, ORD-09, KEY-28, HTTP-09"""

    @pytest.mark.parametrize("keyed", [True, False])
    def test_makes_one_order_of_twelve_at_once(self, server, keyed):
        answers = at_once(12, lambda _: post(server, key=str(uuid4()) if keyed else None, client_order_no="C"))

        told = [answer for answer in answers if (answer[0], answer[1]["code"]) not in REFUSED_FOR_NOW]
        assert Counter(status for status, _ in told) == {201: 1, 200: len(told) - 1}
        assert len({body["data"]["orderId"] for _, body in told}) == 1
        assert counted(server) == (1, 1, 98)
        assert post(server, client_order_no="C")[0] == 200

    def test_is_not_one_in_another_case(self, server):
        assert [post(server, client_order_no=number)[0] for number in ("c", "C")] == [201, 201]


class TestLastPiece:
    def test_is_sold_once_to_thirty_buyers(self, server):
        """STK-01"""
        connection = server.connect()
        connection.cursor().execute("UPDATE stock_stockitem SET on_hand = 1 WHERE sku = 'TEA-100'")
        connection.close()
        lines = [{"sku": "TEA-100", "quantity": 1}]
        answers = at_once(30, lambda number: post(server, key=f"K{number}", lines=lines))

        assert Counter((status, body["code"]) for status, body in answers) == {
            (201, 201): 1,
            (409, "insufficient_stock"): 29,
        }
        assert counted(server) == (1, 1, 0)


class TestCancel:
    def test_gives_back_once_to_eight_at_once(self, server):
        order_no = post(server, key="K")[1]["data"]["orderId"]

        def cancel(_):
            with http_client(server.url) as client:
                return client.post(f"/api/orders/{order_no}/cancel")

        answers = at_once(8, cancel)
        assert {answer.status_code for answer in answers} == {200}
        assert Counter(answer.json()["data"]["isDuplicate"] for answer in answers) == {False: 1, True: 7}
        assert counted(server) == (1, 2, 100)


class TestRefusals:
    def test_can_be_told_apart(self, serve, tmp_path):
        """HTTP-13"""
        server = serve(env={"DEMO_PAUSES": str(tmp_path)})
        post(server, key="K", client_order_no="C")
        reused = post(server, key="K", client_order_no="C", cart_id="other")
        taken = post(server, key="K2", client_order_no="C", lines=[{"sku": "TEA-100", "quantity": 3}])
        with http_client(server.url) as client:
            answers = at_once(2, lambda _: client.post("/api/orders", json=request_body(), headers={
                "Idempotency-Key": "K3", "X-Demo-Pause": "1"}))
        running = next(answer for answer in answers if answer.status_code != 201)

        assert (running.status_code, running.json()["code"]) == (409, "operation_in_progress")
        assert int(running.headers["Retry-After"]) >= 1
        assert (reused[0], reused[1]["code"]) == (422, "idempotency_key_reused")
        assert (taken[0], taken[1]["code"]) == (422, "order_number_reused")
        assert taken[1]["orderId"].startswith("ORD")
