"""Over real HTTP, on each database, with two worker processes."""

import json
from collections import Counter

import pytest

from tests.shopping import at_once, http_client, request_body

from . import senders


@pytest.fixture
def server(serve, vendor):
    return serve(database=vendor, env={"ATOMIC_REQUESTS": "1", **senders.environment()})


@pytest.fixture
def order_no(server):
    """An order of 39.80 CNY."""
    with http_client(server.url) as client:
        answer = client.post("/api/orders", json=request_body(), headers={"Idempotency-Key": "K"})
    return answer.json()["data"]["orderId"]


def counted(server, order_no):
    where = f"WHERE o.order_no = '{order_no}'"
    return (
        server.scalar(f"SELECT status FROM orders_order o {where}"),
        server.scalar(
            f"SELECT COUNT(*) FROM payments_payment p JOIN orders_order o ON o.id = p.order_id {where}"
        ),
        server.scalar("SELECT COUNT(*) FROM payments_notice"),
        server.scalar("SELECT COUNT(*) FROM idempotency_record WHERE operation LIKE 'webhooks.%'"),
        server.scalar("SELECT on_hand FROM stock_stockitem WHERE sku = 'TEA-100'"),
    )


def insist(send, is_ack):
    """Send as a provider does: again until it is acknowledged; return how often it was told to come again."""
    for refusals in range(50):
        answer = send()
        if is_ack(answer):
            return refusals
        assert answer.status_code in (409, 503), answer.content
        assert int(answer.headers["Retry-After"]) >= 1
    raise AssertionError("never acknowledged")


class TestAtOnce:
    def test_each_provider_tells_it_five_times(self, server, order_no):
        """WEB-01, WEB-02, WEB-03, WEB-13"""
        remote = senders.Remote(server.url)
        wechat, alipay = senders.WeChat(client=remote), senders.Alipay(client=remote)

        def tell(number):
            name = ("01", "02", "03")[number % 3]
            return insist(lambda: wechat.send(name, resource={"out_trade_no": order_no}), wechat.is_ack)

        at_once(15, tell)
        assert counted(server, order_no) == ("PAID", 1, 2, 2, 98)

        # by another door: a second charge, which is to be given back
        insist(lambda: alipay.send("01", out_trade_no=order_no), alipay.is_ack)
        assert counted(server, order_no) == ("PAID", 2, 3, 3, 98)

    def test_payment_and_refund_come_in_any_order(self, server, order_no):
        """WEB-04"""
        stripe = senders.Stripe(client=senders.Remote(server.url))

        def body(name):
            event = json.loads(senders.file("stripe", name))
            event["data"]["object"] |= {"metadata": {"order_no": order_no}, "currency": "cny"}
            return json.dumps(event).encode()

        at_once(
            12,
            lambda number: insist(
                lambda: stripe.send("", body=body(("05", "01")[number % 2])), stripe.is_ack
            ),
        )
        assert counted(server, order_no) == ("REFUNDED", 1, 2, 2, 100)


class TestAnswer:
    def test_is_to_the_byte_what_the_provider_expects(self, serve):
        """WEB-13: first and repeated, without a redirect or a CSRF refusal."""
        remote = senders.Remote(serve(env=senders.environment()).url)
        wechat, alipay, stripe = (
            kind(client=remote) for kind in (senders.WeChat, senders.Alipay, senders.Stripe)
        )
        answers = Counter()
        for _ in range(2):
            for answer in (wechat.send("01"), alipay.send("01"), stripe.send("01")):
                answers[answer.status_code, answer.content, answer.headers.get("Content-Type")] += 1

        assert answers == {
            (204, b"", None): 2,
            (200, b"success", "text/plain"): 2,
            (200, b"", "text/plain"): 2,
        }
        forged = alipay.send("12"), wechat.send("09"), stripe.send("01", header="t=1,v1=0")
        assert [answer.status_code for answer in forged] == [401, 401, 401]
        assert forged[0].content == b"fail"
        assert forged[1].json()["code"] == "FAIL"
