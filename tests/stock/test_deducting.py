"""Deductions over HTTP."""

from collections import Counter

import pytest
from django.db import connection

from stock.models import StockItem, StockMovement
from stock.strategies import STRATEGIES
from tests.shopping import at_once, http_client, on_hand, shopper
from tests.stock import SERVERS

PATH = "/api/stock/TEA-100/deductions"


@pytest.mark.django_db
@pytest.mark.urls("config.urls")
class TestItem:
    def test_tells_what_is_on_hand(self, alice):
        answer = alice.get("/api/stock/TEA-100")
        assert answer.json() == {
            "code": 200,
            "message": "Stock",
            "data": {"sku": "TEA-100", "remaining": 100, "version": 0},
        }

    def test_does_not_know_every_sku(self, alice):
        answer = alice.get("/api/stock/NO-SUCH")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")

    def test_is_for_users(self, alice, client):
        answer = client.get("/api/stock/TEA-100")
        assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated")


@pytest.fixture(params=[False, True], ids=["", "atomic-requests"])
def atomic_requests(request, monkeypatch):
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", request.param)


@pytest.fixture
def alice(db):
    StockItem.objects.recount(sku="TEA-100", on_hand=100)
    return shopper()


def deduct(client, sku="TEA-100", **members):
    return client.post(f"/api/stock/{sku}/deductions", {"order_no": "A1", "quantity": 2, **members})


def refused(answer):
    """What a refusal says, once it is sure that it changed nothing."""
    assert (on_hand(), StockItem.objects.get().version, StockMovement.objects.count()) == (100, 0, 0)
    return answer.status_code, answer.json()["code"]


@pytest.mark.urls("config.urls")
@pytest.mark.usefixtures("atomic_requests")
@pytest.mark.parametrize("strategy", STRATEGIES)
class TestDeduction:
    @pytest.fixture(autouse=True)
    def chosen(self, settings, strategy):
        settings.STOCK_STRATEGY = strategy

    def test_is_made_once_for_an_order_number(self, alice):
        first, again, others = deduct(alice), deduct(alice), deduct(shopper("bob"))
        data = {"sku": "TEA-100", "quantity": 2, "remaining": 98, "version": 1, "isDuplicate": False}
        assert (first.status_code, first.json()) == (
            201,
            {"code": 201, "message": "Stock deducted", "data": data},
        )
        for repeat in (again, others):
            assert (repeat.status_code, repeat["Idempotent-Replayed"]) == (200, "true")
            assert repeat.json() == {
                "code": 200,
                "message": "Stock deducted",
                "data": {**data, "isDuplicate": True},
            }
        assert (on_hand(), StockMovement.objects.count()) == (98, 1)

    def test_is_repeated_although_the_stock_is_gone_since(self, alice):
        deduct(alice, version=0)
        assert deduct(alice, order_no="A2", quantity=98).status_code == 201
        again = deduct(alice, version=0)
        assert (again.status_code, again.json()["data"]["remaining"]) == (200, 0)
        assert (on_hand(), StockMovement.objects.count()) == (0, 2)

    def test_of_another_quantity_is_another_one(self, alice):
        deduct(alice)
        answer = deduct(alice, quantity=3)
        assert (answer.status_code, answer.json()["code"]) == (422, "deduction_differs")
        assert (on_hand(), StockMovement.objects.count()) == (98, 1)

    def test_is_refused_when_the_stock_runs_short(self, alice):
        answer = deduct(alice, quantity=101)
        assert refused(answer) == (409, "insufficient_stock")
        assert "Retry-After" not in answer

    def test_is_made_at_the_version_that_was_seen(self, alice):
        seen = alice.get("/api/stock/TEA-100").json()["data"]["version"]
        assert deduct(alice, version=seen).json()["data"]["version"] == 1
        answer = deduct(alice, order_no="A2", version=seen)
        assert (answer.status_code, answer.json()["code"]) == (409, "stock_changed")
        assert (on_hand(), StockMovement.objects.count()) == (98, 1)

    def test_leaves_the_order_of_that_number_its_own(self, alice):
        StockItem.objects.deduct(sku="TEA-100", quantity=1, reference="order:A1")
        assert deduct(alice).status_code == 201
        assert (on_hand(), StockMovement.objects.count()) == (97, 2)


@pytest.mark.urls("config.urls")
class TestRequest:
    @pytest.mark.parametrize(
        "members",
        [
            *[{"quantity": odd} for odd in (-3, 0, 1.5, 1.0, "2", None, True, 10**20, [1])],
            *[{"version": odd} for odd in (-1, 1.0, "0", True, 10**20)],
            *[{"order_no": odd} for odd in ("", " ", None, "A" * 65, "A\0", {})],
        ],
    )
    def test_is_refused_when_it_is_odd(self, alice, members):
        """STK-10"""
        assert refused(deduct(alice, **members)) == (400, "invalid")

    @pytest.mark.parametrize("body", [[], "A1", {}, {"quantity": 2}, {"order_no": "A1"}])
    def test_is_refused_when_it_is_incomplete(self, alice, body):
        assert refused(alice.post("/api/stock/TEA-100/deductions", body)) == (400, "invalid")

    @pytest.mark.parametrize("sku", ["NO-SUCH", "tea-100", "TEA-100%00", "A" * 300])
    def test_is_refused_for_an_unknown_article(self, alice, sku):
        assert refused(deduct(alice, sku=sku)) == (404, "not_found")

    def test_is_for_users(self, alice, client):
        assert refused(deduct(client)) == (401, "not_authenticated")

    def test_may_leave_the_version_open(self, alice):
        assert deduct(alice, version=None).status_code == 201

    def test_is_answered_in_chinese(self, alice):
        alice.credentials(HTTP_ACCEPT_LANGUAGE="zh-hans")
        assert deduct(alice).json()["message"] == "库存已扣减"
        assert deduct(alice, order_no="A2", quantity=99).json()["detail"] == "库存不足，请选择其他商品"


@pytest.mark.parametrize("vendor", SERVERS)
def test_one_order_number_at_several_doors_takes_once(serve, vendor):
    """STK-03"""
    server = serve(database=vendor, env={"ATOMIC_REQUESTS": "1"})
    with http_client(server.url) as client:
        answers = at_once(12, lambda _: client.post(PATH, json={"order_no": "A1", "quantity": 2}))
    assert Counter(answer.status_code for answer in answers) == {201: 1, 200: 11}
    assert {answer.json()["data"]["remaining"] for answer in answers} == {98}
    assert server.scalar("SELECT COUNT(*) FROM stock_stockmovement") == 1
