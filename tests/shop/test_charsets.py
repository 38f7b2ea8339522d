"""A charset that a client names is looked at before Django believes it."""

import pytest
from django.test import Client

from idempotency.models import IdempotencyRecord
from orders.models import Order
from tests.shopping import http_client, request_body, sell, shopper

pytestmark = [pytest.mark.django_db, pytest.mark.urls("config.urls")]

NO_TEXT = ["hex", "base64", "rot13", "zip", "bz2", "quopri", "uu", "undefined", "idna", "punycode", "utf-7"]
NOT_ASCII = ["utf-16", "utf-32", "cp037", "unicode_escape"]
UNKNOWN = ["klingon", '"hex"', "", "x" * 5000, "é", "a b"]
REFUSED = [*NO_TEXT, *NOT_ASCII, *UNKNOWN]

BODY = b'{"cart_id": "67890", "currency": "CNY", "lines": [{"sku": "TEA-100", "quantity": 2}]}'
KEY = {"Idempotency-Key": "K"}


def post(client, content_type):
    return client.generic("POST", "/api/orders", BODY, content_type=content_type, headers=KEY)


class TestCharset:
    @pytest.mark.parametrize("charset", REFUSED)
    def test_that_nobody_can_read_is_refused_and_leaves_the_key_free(self, charset):
        sell()
        answer = post(shopper(), f"application/json; charset={charset}")

        assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
        assert answer["Content-Type"] == "application/problem+json"
        assert (Order.objects.count(), IdempotencyRecord.objects.count()) == (0, 0)
        assert post(shopper(), "application/json").status_code == 201

    @pytest.mark.parametrize("charset", ["utf-8", "UTF8", '"utf-8"', "gbk", "iso-8859-1", "us-ascii"])
    def test_of_text_is_taken(self, charset):
        sell()
        assert post(shopper(), f"application/json; charset={charset}").status_code == 201

    @pytest.mark.parametrize("path", ["/", "/i18n/setlang/", "/admin/login/", "/api/nowhere"])
    def test_is_refused_at_every_address(self, path):
        client = Client(enforce_csrf_checks=True)
        form = "application/x-www-form-urlencoded; charset=hex"
        answers = [client.generic(method, path, b"a=1", form) for method in ("GET", "POST")]
        assert [answer.status_code for answer in answers] == [415, 415]

    def test_is_refused_in_the_clients_language(self):
        answer = shopper().generic(
            "POST", "/api/orders", BODY, "text/plain; charset=hex", headers={"Accept-Language": "zh-CN"}
        )
        assert answer.json()["detail"] == "无法识别请求的字符集，请使用 UTF-8。"


class TestServed:
    @pytest.mark.parametrize("app", ["config.wsgi", "config.asgi"])
    def test_is_refused_by_a_real_server(self, serve, app):
        """Also where Django decodes the query string, or the name of the charset itself, by it."""
        server = serve(app=app, workers=1)
        parameters = [f"charset={name}" for name in NO_TEXT] + ["charset*=hex''%41", "charset*=klingon''x"]

        with http_client(server.url) as client:
            refused = [
                client.post(
                    "/api/orders?x=1", content=BODY, headers={**KEY, "Content-Type": f"text/x; {parameter}"}
                )
                for parameter in parameters
            ]
            taken = client.post("/api/orders?x=1", json=request_body(), headers=KEY)

        assert [answer.status_code for answer in refused] == [415] * len(parameters)
        assert {answer.headers["Content-Type"] for answer in refused} == {"application/problem+json"}
        assert taken.status_code == 201
