"""Over real HTTP, on each database, with two worker processes."""

from collections import Counter
from uuid import uuid4

import pytest

from tests.shopping import at_once, http_client, request_body


def post(server, *, key=None, pause=None, **members):
    headers = {"Idempotency-Key": key} if key else {}
    if pause:
        headers["X-Demo-Pause"] = pause
    with http_client(server.url) as client:
        return client.post("/api/orders", json=request_body(**members), headers=headers)


def counted(server):
    orders = server.scalar("SELECT COUNT(*) FROM orders_order")
    movements = server.scalar("SELECT COUNT(*) FROM stock_stockmovement")
    on_hand = server.scalar("SELECT on_hand FROM stock_stockitem WHERE sku = 'TEA-100'")
    return orders, movements, on_hand


class TestOneClientOrderNumber:
    @pytest.mark.parametrize("atomic_requests", ["0", "1"])
    def test_makes_one_order_of_twelve_at_once(self, serve, vendor, atomic_requests):
        """ORD-02, ORD-09, KEY-28, HTTP-09"""
        server = serve(database=vendor, env={"ATOMIC_REQUESTS": atomic_requests})
        self.check(server, lambda _: post(server, key=str(uuid4()), client_order_no="c"))
        assert counted(server) == (1, 1, 98)
        self.check(
            server, lambda _: post(server, client_order_no="C")
        )  # in another case it is another number
        assert counted(server) == (2, 2, 96)

    def check(self, server, send):
        answers = at_once(12, send)
        answered = [answer for answer in answers if answer.status_code != 409]
        waiting = [answer for answer in answers if answer.status_code == 409]
        assert Counter(answer.status_code for answer in answered) == {201: 1, 200: len(answered) - 1}
        assert len({answer.json()["data"]["orderId"] for answer in answered}) == 1
        assert {answer.json()["code"] for answer in waiting} <= {"operation_in_progress"}
        assert all("Retry-After" in answer.headers for answer in waiting)


class TestManyBuyers:
    def test_get_the_last_piece_once_and_give_it_back_once(self, serve, vendor):
        """STK-01, STK-07"""
        server = serve(database=vendor)
        connection = server.connect()
        connection.cursor().execute("UPDATE stock_stockitem SET on_hand = 1 WHERE sku = 'TEA-100'")
        connection.close()
        lines = [{"sku": "TEA-100", "quantity": 1}]
        answers = at_once(30, lambda number: post(server, key=f"K{number}", lines=lines))

        told = Counter((answer.status_code, answer.json()["code"]) for answer in answers)
        assert told == {(201, 201): 1, (409, "insufficient_stock"): 29}
        assert counted(server) == (1, 1, 0)
        order_no = next(answer.json()["data"]["orderId"] for answer in answers if answer.is_success)
        answers = at_once(8, lambda _: self.cancel(server, order_no))
        assert {answer.status_code for answer in answers} == {200}
        assert Counter(answer.json()["data"]["isDuplicate"] for answer in answers) == {False: 1, True: 7}
        assert counted(server) == (1, 2, 1)

    def cancel(self, server, order_no):
        with http_client(server.url) as client:
            return client.post(f"/api/orders/{order_no}/cancel")


class TestRefusals:
    def test_can_be_told_apart(self, serve, tmp_path):
        """HTTP-13"""
        server = serve(env={"DEMO_PAUSES": str(tmp_path)})
        first = post(server, key="K", client_order_no="C")
        reused = post(server, key="K", client_order_no="C", cart_id="other")
        taken = post(server, key="K2", client_order_no="C", lines=[{"sku": "TEA-100", "quantity": 3}])
        answers = at_once(2, lambda _: post(server, key="K3", pause="1"))
        running = next(answer for answer in answers if answer.status_code != 201)

        assert (running.status_code, running.json()["code"]) == (409, "operation_in_progress")
        assert int(running.headers["Retry-After"]) >= 1
        assert (reused.status_code, reused.json()["code"]) == (422, "idempotency_key_reused")
        assert (taken.status_code, taken.json()["code"]) == (422, "order_number_reused")
        assert taken.json()["orderId"] == first.json()["data"]["orderId"]
