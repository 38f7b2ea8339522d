"""kill -9 within a payment, at each point: one charge, and nothing is stuck once the lease has ended."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest

from tests.processes import Templates
from tests.scenarios.clients import LOST
from tests.scenarios.gates import Gate
from tests.scenarios.payment_gates import CHARGED, PAY_POINTS, SETTLED
from tests.scenarios.payments import LEASE, PayingShop, paying_shop

VENDORS = [
    pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("postgresql", "mariadb", "sqlite")
]
PATIENCE = LEASE + 20


@pytest.fixture(scope="module")
def shop(
    request: pytest.FixtureRequest, templates: Templates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PayingShop]:
    """Without notices: only the retry, or the reconciler, finds out."""
    files = tmp_path_factory.mktemp("paying")
    with paying_shop(request.param, templates, files, notices=False) as shop:
        yield shop


@pytest.mark.parametrize("shop", VENDORS, indirect=True)
@pytest.mark.parametrize("point", PAY_POINTS)
class TestKilledWorker:
    def kill(self, shop: PayingShop, gate: Gate, order_no: str, point: str) -> None:
        with ThreadPoolExecutor() as pool:
            lost = pool.submit(shop.pay, order_no, "alipay", dict(gate.at(point)))
            gate.wait().kill()
            assert isinstance(lost.exception(), LOST)

    def test_is_followed_by_a_retry_that_finds_the_charge(
        self, shop: PayingShop, gate: Gate, point: str
    ) -> None:
        order_no = shop.order()
        self.kill(shop, gate, order_no, point)
        assert shop.charges()[order_no] == (point in CHARGED)
        retry = shop.insist(order_no, within=PATIENCE)
        assert retry.data["isDuplicate"] is (point in SETTLED)
        assert (shop.charges()[order_no], shop.statuses()[order_no]) == (1, "PAID")
        assert shop.payments()[order_no, "SUCCEEDED"] == 1
        assert shop.unfinished() == 0

    def test_is_followed_by_the_reconciler_that_finds_the_charge(
        self, shop: PayingShop, gate: Gate, point: str
    ) -> None:
        order_no = shop.order()
        self.kill(shop, gate, order_no, point)
        sleep(LEASE + 0.5)
        shop.reconcile(at_once=2)
        charged = point in CHARGED
        assert (shop.charges()[order_no], shop.statuses()[order_no]) == (
            (1, "PAID") if charged else (0, "PENDING")
        )
        assert shop.payments()[order_no, "SUCCEEDED"] == charged
        assert shop.payments()[order_no, "PROCESSING"] == 0
        assert (shop.reconcile(), shop.unfinished()) == ([], 0)


@pytest.mark.parametrize("shop", VENDORS[:2], indirect=True)
class TestPausedWorker:
    @pytest.mark.parametrize("point", ["pay_before_charge", "pay_after_charge"])
    def test_that_comes_back_while_its_successor_runs_has_lost(
        self, shop: PayingShop, gate: Gate, point: str
    ) -> None:
        """SIGSTOP past the lease; the successor stands at the provider when the first is resumed."""
        order_no = shop.order()
        with ThreadPoolExecutor() as pool:
            late = pool.submit(shop.pay, order_no, "alipay", dict(gate.at(point)))
            held = gate.wait()
            os.kill(held.pid, signal.SIGSTOP)
            try:
                sleep(LEASE + 0.5)
                asking = dict(gate.at("pay_before_find"))
                successor = pool.submit(shop.pay, order_no, "wechat", asking)
                running = gate.wait()
                assert running.pid != held.pid
            finally:
                os.kill(held.pid, signal.SIGCONT)
            held.release()
            lost = late.result()
            assert (lost.status, lost.document["code"]) == (409, "claim_lost")
            assert shop.statuses()[order_no] == "PENDING"
            running.release()
            assert successor.result().status == 200
        assert (shop.charges()[order_no], shop.statuses()[order_no]) == (1, "PAID")
        assert shop.payments_of(order_no) == {"SUCCEEDED": 1}
        assert shop.unfinished() == 0
