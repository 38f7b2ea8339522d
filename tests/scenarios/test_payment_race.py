"""Several doors to one payment, at the same moment: one charge, one payment, and all hear of it."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.processes import Templates
from tests.scenarios.gates import Gate
from tests.scenarios.payments import PayingShop, paying_shop
from tests.shopping import at_once

VENDORS = [
    pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("postgresql", "mariadb", "sqlite")
]
METHODS = ("alipay", "wechat", "card")

pytestmark = pytest.mark.parametrize("shop", VENDORS, indirect=True)


@pytest.fixture(scope="module")
def shop(
    request: pytest.FixtureRequest, templates: Templates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PayingShop]:
    with paying_shop(request.param, templates, tmp_path_factory.mktemp("paying")) as shop:
        yield shop


class TestPay:
    def test_by_twelve_at_once_charges_once(self, shop: PayingShop) -> None:
        """PAY-02"""
        order_no = shop.order()
        shop.sandbox.rule("slow", order=order_no, seconds=0.3)
        answers = at_once(12, lambda number: shop.pay(order_no, METHODS[number % 3]))
        told = [answer for answer in answers if answer.status == 200]
        assert {answer.document["code"] for answer in answers if answer.status != 200} <= {
            "operation_in_progress"
        }
        assert sum(not answer.data["isDuplicate"] for answer in told) == 1
        assert len({answer.data["paidAt"] for answer in told}) == 1
        assert (shop.charges()[order_no], shop.payments_of(order_no)) == (1, {"SUCCEEDED": 1})
        assert shop.pay(order_no).data["isDuplicate"] is True

    @pytest.mark.parametrize("method", METHODS)
    def test_and_the_providers_notice_at_once_settle_once(self, shop: PayingShop, method: str) -> None:
        """PAY-10: the notices come while the charge's answer is on its way, and after it."""
        shop.sandbox.plan(copies=[5], seconds=[0.0, 0.0, 0.2])
        order_no = shop.order()
        shop.sandbox.rule("silent_after", order=order_no, seconds=0.1)
        first = shop.pay(order_no, method)
        assert first.status in (200, 202)
        answers = shop.sandbox.notices(order_no, *["paid"] * 5, at_once=True)
        assert all(answer["acknowledged"] or answer["status"] in (409, 503) for answer in answers)
        paid = shop.insist(order_no, within=20)
        assert shop.sandbox.notices(order_no, "paid")[0]["acknowledged"]
        assert (shop.charges()[order_no], shop.payments_of(order_no)) == (1, {"SUCCEEDED": 1})
        assert (shop.statuses()[order_no], shop.pay(order_no).data["paidAt"]) == ("PAID", paid.data["paidAt"])
        shop.sandbox.plan(copies=[1], seconds=[0.0])

    def test_and_cancel_at_once_revive_nothing(self, shop: PayingShop, gate: Gate) -> None:
        order_no = shop.order()
        with ThreadPoolExecutor() as pool:
            paying = pool.submit(shop.pay, order_no, "alipay", dict(gate.at("pay_before_charge")))
            held = gate.wait()
            assert shop.cancel(order_no).status == 200
            held.release()
            late = paying.result()
        assert (late.status, late.document["code"]) == (409, "invalid_transition")
        assert shop.statuses()[order_no] == "CANCELLED"
        shop.reconcile(at_once=2)
        (charge,) = shop.sandbox.charges(order_no)
        assert [refund["amount_minor"] for refund in charge["refunds"]] == [1990]
        assert shop.payments_of(order_no) == {"REFUNDED": 1}
        assert shop.statuses()[order_no] == "CANCELLED"


class TestRefund:
    @pytest.fixture
    def order_no(self, shop: PayingShop) -> str:
        """A paid order of 19.90."""
        order_no = shop.order()
        assert shop.pay(order_no, "wechat").status == 200
        return order_no

    def given_back(self, shop: PayingShop, order_no: str) -> list[int]:
        (charge,) = shop.sandbox.charges(order_no)
        return [refund["amount_minor"] for refund in charge["refunds"]]

    def test_of_sixty_percent_twice_at_once_is_refused_once(self, shop: PayingShop, order_no: str) -> None:
        """PAY-06"""
        answers = at_once(2, lambda number: shop.refund(order_no, f"R{number}", "11.94"))
        refused = next(answer for answer in answers if answer.status != 201)
        assert sorted(answer.status for answer in answers) == [201, 409]
        assert refused.document["code"] == "refund_exceeds_payment"
        assert self.given_back(shop, order_no) == [1194]

    def test_of_one_number_by_eight_at_once_is_made_once(self, shop: PayingShop, order_no: str) -> None:
        answers = at_once(8, lambda _: shop.refund(order_no, "R1", "10.00"))
        statuses = Counter(answer.status for answer in answers)
        assert statuses[201] == 1
        assert statuses.keys() <= {200, 201, 409}
        assert shop.refund(order_no, "R1", "10.00").data["isDuplicate"] is True
        assert self.given_back(shop, order_no) == [1000]

    def test_in_many_parts_at_once_gives_back_all_and_no_more(self, shop: PayingShop, order_no: str) -> None:
        answers = at_once(12, lambda number: shop.refund(order_no, f"P{number}", "1.99"))
        assert Counter(answer.status for answer in answers) == {201: 10, 409: 2}
        assert sum(self.given_back(shop, order_no)) == 1990
        assert shop.statuses()[order_no] == "REFUNDED"
        moves = shop.rows(
            f"SELECT kind FROM stock_stockmovement WHERE reference = 'order:{order_no}' AND kind = 'RESTORED'"
        )
        assert len(moves) == 1
