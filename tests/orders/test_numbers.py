"""An order is known by its number to the byte, on each database."""

import pytest

from tests.shopping import http_client, request_body

BESIDE_IT = ["{}%20", "%20{}", "{}%0A", "{}%2F", "{}%25", "{}%09", "{}%C2%A0", "{}+", "{}%20%20"]
COUNTS = (
    "SELECT COUNT(*) FROM orders_order WHERE status = 'PENDING'",
    "SELECT COUNT(*) FROM idempotency_record",
)


@pytest.mark.parametrize("staff", [False, True])
def test_a_number_with_something_beside_it_is_another_number(serve, vendor, staff):
    """Databases that pad text, and readers that strip it, see none of it."""
    server = serve(database=vendor, workers=1)
    with http_client(server.url) as client:
        ordered = client.post("/api/orders", json=request_body(), headers={"Idempotency-Key": "K"})
        order_no = ordered.json()["data"]["orderId"]
        if staff:
            client.headers["Authorization"] = "Token demo-admin"
        answers = {}
        for other in BESIDE_IT:
            address = f"/api/orders/{other.format(order_no)}"
            answers |= {
                (other, "detail"): client.get(address),
                (other, "cancel"): client.post(f"{address}/cancel"),
                (other, "ship"): client.post(f"{address}/ship"),
                (other, "pay"): client.post(f"{address}/pay", json={"method": "wechat"}),
                (other, "refunds"): client.post(
                    f"{address}/refunds", json={"refund_no": "R1", "amount": "1.00"}
                ),
            }
        assert client.get(f"/api/orders/{order_no}").status_code == 200

    assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(answers, 404)
    assert [server.scalar(count) for count in COUNTS] == [1, 1]
