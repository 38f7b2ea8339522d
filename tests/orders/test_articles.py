"""What can be sold: nothing for free, nothing at a price or in a currency that no order could hold."""

import pytest
from django.db import IntegrityError, transaction

from orders.models import HIGHEST_PRICE_MINOR, Article
from orders.serializers import MAX_LINES, MAX_QUANTITY
from tests.shopping import order, sell, shopper

pytestmark = [pytest.mark.django_db, pytest.mark.urls("config.urls")]

FORM = {"sku": "GIFT", "name": "Gift", "price_minor": "1", "currency": "CNY"}


class TestDatabase:
    @pytest.mark.parametrize(
        "article", [{"price_minor": 0}, {"price_minor": HIGHEST_PRICE_MINOR + 1}, {"currency": "XXX"}]
    )
    def test_refuses_an_article_that_cannot_be_sold(self, article):
        with pytest.raises(IntegrityError), transaction.atomic():
            Article.objects.create(
                sku="GIFT", name="Gift", **{"price_minor": 1, "currency": "CNY", **article}
            )
        assert not Article.objects.exists()


class TestAdmin:
    @pytest.mark.parametrize(
        "wrong", [{"price_minor": "0"}, {"price_minor": str(10**12 + 1)}, {"currency": "XXX"}]
    )
    def test_refuses_an_article_that_cannot_be_sold(self, admin_client, wrong):
        answer = admin_client.post("/admin/orders/article/add/", FORM | wrong)
        assert (answer.status_code, set(answer.context["adminform"].form.errors)) == (200, set(wrong))
        assert not Article.objects.exists()

    def test_takes_the_cheapest(self, admin_client):
        assert admin_client.post("/admin/orders/article/add/", FORM).status_code == 302
        assert Article.objects.get().price_minor == 1


class TestLargestOrder:
    def test_is_a_number_that_every_database_holds(self):
        assert HIGHEST_PRICE_MINOR * MAX_LINES * MAX_QUANTITY < 2**63

    def test_of_one_article_is_made_and_read(self):
        sell(sku="GOLD", price_minor=HIGHEST_PRICE_MINOR, stock=MAX_QUANTITY)
        client = shopper()
        made = order(client, ("GOLD", MAX_QUANTITY))
        assert made.status_code == 201, made.content
        assert made.json()["data"]["amount"] == "100000000000000.00"
        assert client.get("/api/orders").json()["data"]["orders"][0]["amount"] == "100000000000000.00"
