import pytest
from django.db import DatabaseError, connection

pytestmark = [pytest.mark.django_db, pytest.mark.urls("config.urls")]


class TestStartPage:
    def test_says_what_this_is_and_where_to_go(self, client):
        page = client.get("/").content.decode()
        assert '<html lang="en">' in page
        assert "curl -i http://testserver/api/orders" in page
        assert 'href="/admin/"' in page

    def test_is_there_in_chinese(self, client):
        page = client.get("/", headers={"Accept-Language": "zh-CN"}).content.decode()
        assert '<html lang="zh-hans">' in page
        assert "只有一个订单" in page

    def test_remembers_the_language_that_was_chosen(self, client):
        answer = client.post("/i18n/setlang/", {"language": "zh-hans"}, headers={"Referer": "/"})
        assert answer.status_code == 302
        assert '<html lang="zh-hans">' in client.get("/").content.decode()

    def test_gives_away_no_password_outside_the_demo(self, client, settings):
        settings.DEBUG = True
        assert "demo-alice</code></td>" in client.get("/").content.decode()
        settings.DEBUG = False
        assert "demo-alice</code></td>" not in client.get("/").content.decode()


class TestHealth:
    def test_is_told_to_everybody(self, client):
        assert client.get("/livez").json() == {"status": "ok"}
        assert client.get("/readyz").json() == {"status": "ok", "database": "ok"}

    def test_depends_on_the_database(self, client):
        def down(*arguments):
            raise DatabaseError

        with connection.execute_wrapper(down):
            answers = {path: client.get(path).status_code for path in ("/livez", "/readyz")}
        assert answers == {"/livez": 200, "/readyz": 503}


class TestAdmin:
    def test_shows_orders_and_stock_and_changes_neither(self, admin_client):
        for page in ("orders/order", "stock/stockitem", "stock/stockmovement"):
            assert admin_client.get(f"/admin/{page}/").status_code == 200
            assert admin_client.get(f"/admin/{page}/add/").status_code == 403
        assert admin_client.get("/admin/orders/article/add/").status_code == 200
