from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from rest_framework.authtoken.models import Token

from orders.models import Article
from stock.models import StockItem

pytestmark = pytest.mark.django_db


def demo_data(*arguments):
    call_command("demo_data", *arguments, stdout=StringIO())


def stocks():
    return dict(StockItem.objects.values_list("sku", "on_hand"))


class TestDemoData:
    @pytest.fixture(autouse=True)
    def _debug(self, settings, monkeypatch):
        settings.DEBUG = True
        monkeypatch.delenv("DEMO_STOCK", raising=False)

    def test_makes_users_articles_and_stock(self):
        demo_data()
        assert dict(Token.objects.values_list("key", "user__username")) == {
            "demo-alice": "alice",
            "demo-bob": "bob",
            "demo-admin": "admin",
        }
        prices = dict(Article.objects.values_list("sku", "price_minor"))
        assert prices == {"TEA-100": 1990, "TEA-200": 3500, "CUP-010": 1700, "POT-001": 12000}
        assert set(Article.objects.values_list("currency", flat=True)) == {"CNY"}
        assert stocks() == dict.fromkeys(prices, 100)

    def test_lets_the_admin_in(self, client):
        demo_data()
        assert client.login(username="admin", password="admin")
        assert client.get("/admin/").status_code == 200

    def test_changes_nothing_the_second_time(self):
        demo_data()
        StockItem.objects.deduct(sku="TEA-100", quantity=1, reference="order:1")
        demo_data()
        assert stocks()["TEA-100"] == 99
        assert Token.objects.count() == 3

    def test_sets_the_stock_that_it_is_given(self, monkeypatch):
        demo_data()
        demo_data("--stock", "0")
        assert set(stocks().values()) == {0}
        monkeypatch.setenv("DEMO_STOCK", "7")
        demo_data()
        assert set(stocks().values()) == {7}

    def test_refuses_a_stock_below_zero(self):
        with pytest.raises(CommandError):
            demo_data("--stock", "-1")

    def test_refuses_where_debug_is_off(self, settings):
        settings.DEBUG = False
        with pytest.raises(CommandError, match="DEBUG"):
            demo_data()
        assert not Article.objects.exists()
