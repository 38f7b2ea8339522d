"""Many more buyers than pieces: exactly the pieces are sold, and everybody gets an answer."""

import json
from dataclasses import dataclass, field

import pytest
from django.db import connections

from stock.exceptions import InsufficientStock, StockBusy
from stock.models import StockItem, StockMovement
from stock.strategies import STRATEGIES
from tests.scenarios.clients import Client
from tests.shopping import at_once

PIECES = 10
BUYERS = {"postgresql": 500, "mariadb": 500, "sqlite": 100}
AT_A_TIME = 32
SOLD_OUT = (409, "insufficient_stock")
BUSY = (409, "stock_busy")


@dataclass
class Crowd:
    """So many buyers with an order number each, who ask at the same time."""

    buyers: int
    retries: int
    """How often each asks again, whatever the answer was."""

    answers: dict[str, list] = field(default_factory=dict)

    def ask(self, ask):
        """Call ``ask(order_no)`` for each of them, again and again."""

        def queue(window):
            try:
                for number in range(window, self.buyers, AT_A_TIME):
                    order_no = f"N{number}"
                    self.answers[order_no] = [ask(order_no) for _ in range(1 + self.retries)]
            finally:
                connections.close_all()

        at_once(AT_A_TIME, queue)

    @property
    def sold(self):
        """What was left after each sale, and the version."""
        sales = [answer for each in self.answers.values() for answer in each if answer[0] == 201]
        return sorted((remaining, version) for _, remaining, version in sales)

    def check(self):
        """Each piece is sold once; who has one is told so again each time, all others that there is none."""
        assert len(self.answers) == self.buyers
        assert self.sold == [(left, PIECES - left) for left in range(PIECES)]
        for told in self.answers.values():
            statuses = [answer[0] if answer[0] < 300 else answer for answer in told]
            refused, served = split(statuses)
            assert set(refused) <= {SOLD_OUT, BUSY}
            assert served in ([], [201] + [200] * (len(served) - 1))


def split(statuses):
    """Refusals come before the sale, and none after it."""
    first = statuses.index(201) if 201 in statuses else len(statuses)
    return statuses[:first], statuses[first:]


@pytest.mark.django_db(transaction=True, databases="__all__")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_sell_all_pieces_and_no_more(database, vendor, strategy):
    """STK-01, STK-02"""
    items = StockItem.objects.using(database)
    items.recount(sku="TEA-100", on_hand=PIECES)
    crowd = Crowd(BUYERS[vendor], retries=3)

    def ask(order_no):
        try:
            sale = items.deduct(sku="TEA-100", quantity=1, reference=order_no, strategy=strategy)
        except (InsufficientStock, StockBusy) as refusal:
            return 409, refusal.code
        return 200 if sale.is_duplicate else 201, sale.remaining, sale.version

    crowd.ask(ask)

    crowd.check()
    assert (items.get().on_hand, items.get().version) == (0, PIECES)
    assert StockMovement.objects.using(database).count() == PIECES


@pytest.mark.postgresql
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_sell_all_pieces_and_no_more_over_http(serve, strategy):
    """STK-01"""
    server = serve(threads=16, env={"STOCK_STRATEGY": strategy, "THROTTLE_RATE": ""})
    with server.connect() as connection:
        connection.execute("UPDATE stock_stockitem SET on_hand = %s WHERE sku = 'TEA-100'", [PIECES])
    crowd, client = Crowd(500, retries=0), Client(url=server.url)

    def ask(order_no):
        body = json.dumps({"order_no": order_no, "quantity": 1}).encode()
        answer = client.post("/api/stock/TEA-100/deductions", key="", body=body)
        if answer.status >= 300:
            return answer.status, answer.document["code"]
        return answer.status, answer.data["remaining"], answer.data["version"]

    crowd.ask(ask)

    crowd.check()
    assert server.scalar("SELECT on_hand FROM stock_stockitem WHERE sku = 'TEA-100'") == 0
    assert server.scalar("SELECT COUNT(*) FROM stock_stockmovement") == PIECES
