import re
from html import unescape

import pytest
from django.contrib.admin import site
from django.contrib.staticfiles import finders
from django.db import DatabaseError, connection, transaction
from django.urls import reverse

from demo.scenarios import SCENARIOS
from idempotency.outbox import publish

pytestmark = [pytest.mark.django_db, pytest.mark.urls("config.urls")]


ORDER_NO = "ORD20261130-7K3M9QX0TB"
KEY = "0b7c9a52-2f0e-4f0e-9d53-0d2f6f4c8e11"


def start(client, **query):
    return client.get("/", query).content.decode()


def codes(page):
    """The commands as they are copied."""
    return [unescape(code) for code in re.findall(r"<code>(curl.*?)</code>", page, re.DOTALL)]


def prose(page):
    """What is read, without commands, names and tags."""
    body = re.sub(r"<(head|code|pre)\b.*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"<[^>]*>", "\n", body)


class TestStartPage:
    def test_says_what_this_is_and_where_to_go(self, client, settings):
        settings.DEBUG, settings.SANDBOX_URL = True, "http://127.0.0.1:8123"
        page = start(client)
        assert '<html lang="en">' in page
        for address in ("/admin/", "http://127.0.0.1:8123/charges", "http://127.0.0.1:8123/messages"):
            assert f'href="{address}"' in page

    def test_has_a_command_for_each_thing_to_try(self, client):
        called = [re.search(r"http://testserver/api/(\S+)", code)[1] for code in codes(start(client))]
        assert called == [
            "orders",
            "orders",
            "stock/TEA-100",
            "orders/ORD…/pay",
            "orders/ORD…/refunds",
            "orders/ORD…/cancel",
            "sms",
        ]

    def test_uses_one_key_for_the_same_visit_and_another_for_the_next(self, client):
        first, second = (re.findall("Idempotency-Key: ([0-9a-f-]{36})", start(client)) for _ in range(2))
        assert len(first) == 2
        assert len({*first}) == 1
        assert {*first}.isdisjoint(second)

    def test_puts_an_order_number_into_the_commands_and_keeps_the_key(self, client):
        page = start(client, order=f" {ORDER_NO} ", key=KEY)
        assert [ORDER_NO in code for code in codes(page)] == [False, False, False, True, True, True, False]
        assert [KEY in code for code in codes(page)] == [True, True, False, False, False, False, False]

    @pytest.mark.parametrize(
        "wrong", ["$(rm -rf ~)", "'; reboot; '", f"{ORDER_NO}\n`id`", "<script>", "x" * 99]
    )
    def test_puts_nothing_else_into_the_commands(self, client, wrong):
        page = start(client, order=wrong, key=wrong)
        assert sum("ORD…" in code for code in codes(page)) == 3
        assert wrong not in page

    def test_lists_what_the_walk_shows(self, client):
        page = start(client)
        for number, (title, _) in enumerate(SCENARIOS, start=1):
            assert f'id="scenario-{number}"' in page
            assert f'<th scope="row">{title}</th>' in page

    def test_is_there_in_chinese_to_the_last_word(self, client):
        page = client.get("/", headers={"Accept-Language": "zh-CN"}).content.decode()
        assert '<html lang="zh-hans">' in page
        assert "只有一个订单" in page
        assert re.findall(r"[A-Za-z]+,? [a-z]+,? [a-z]+", prose(page)) == []

    def test_offers_each_command_to_be_copied_and_says_so(self, client):
        page = start(client)
        buttons = re.findall(r'<button type="button" class="copy" disabled aria-controls="([^"]+)"', page)
        assert len(buttons) == len({*buttons}) == 9
        assert all(f'<pre id="{target}">' in page for target in buttons)
        assert page.count('role="status"') == 1

    def test_needs_nothing_that_is_not_there(self, client):
        files = re.findall(r'"/static/([^"]+)"', start(client))
        assert {"demo/start.css", "demo/start.js", "demo/favicon.svg"} == {*files}
        assert all(finders.find(file) for file in files)

    def test_has_an_icon_where_browsers_look_for_one(self, client):
        answer = client.get("/favicon.ico")
        assert (answer.status_code, answer["Location"]) == (302, "/static/demo/favicon.svg")

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
        ready = {"status": "ok", "database": "ok", "redis": "ok", "outbox": {"due": 0, "dead": 0}}
        assert client.get("/readyz").json() == ready

    def test_tells_how_many_messages_wait(self, client, settings):
        settings.IDEMPOTENCY_OUTBOX_ROUTES = {"news": []}
        with transaction.atomic():
            publish("news", {})
        assert client.get("/readyz").json()["outbox"] == {"due": 1, "dead": 0}

    def test_depends_on_the_database(self, client):
        def down(*arguments):
            raise DatabaseError

        with connection.execute_wrapper(down):
            answers = {path: client.get(path).status_code for path in ("/livez", "/readyz")}
        assert answers == {"/livez": 200, "/readyz": 503}


class TestAdmin:
    def test_has_a_list_of_everything(self, admin_client):
        pages = [
            reverse(f"admin:{m._meta.app_label}_{m._meta.model_name}_changelist") for m in site._registry
        ]
        assert {page: admin_client.get(page).status_code for page in pages} == dict.fromkeys(pages, 200)

    def test_shows_orders_and_stock_and_changes_neither(self, admin_client):
        for page in ("orders/order", "stock/stockitem", "stock/stockmovement"):
            assert admin_client.get(f"/admin/{page}/").status_code == 200
            assert admin_client.get(f"/admin/{page}/add/").status_code == 403
        assert admin_client.get("/admin/orders/article/add/").status_code == 200
