"""What people see of the callbacks: the notices in the admin, and the log."""

import logging

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from payments.models import Notice

from .senders import Stripe, WeChat, file

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("order")]


@pytest.fixture
def staff(client):
    client.force_login(User.objects.create_superuser("admin"))
    return client


class TestAdmin:
    def test_shows_what_needs_a_look(self, staff, stripe, wechat):
        wechat.send("05")
        stripe.send("", body=file("stripe", "10").replace(b'"usd"', b'"xts"'))
        page = staff.get(reverse("admin:payments_notice_changelist"), {"fate__exact": "MISMATCHED"})
        text = page.content.decode()

        assert "0.01 CNY" in text
        assert "39.80 CNY" in text
        assert "SO-2024-NOPE" not in text

    def test_shows_a_notice_in_chinese(self, staff, stripe):
        stripe.send("", body=file("stripe", "10").replace(b'"usd"', b'"xts"'))
        address = reverse("admin:payments_notice_change", args=[Notice.objects.get().pk])
        text = staff.get(address, headers={"Accept-Language": "zh-CN"}).content.decode()

        assert "订单不存在" in text
        assert "SO-2024-NOPE" in text


class TestLog:
    def test_tells_what_became_of_each(self, caplog, wechat, alipay):
        caplog.set_level(logging.INFO)
        wechat.send("05")
        alipay.send("09")
        alipay.send("01")
        told = [
            (record.levelname, record.getMessage()) for record in caplog.records if record.name == "payments"
        ]

        assert told == [
            ("WARNING", "wechat told PAID of SO-2024-0001: MISMATCHED"),
            ("WARNING", "alipay told PAID of SO-2024-0001: FOREIGN"),
            ("INFO", "alipay told PAID of SO-2024-0001: APPLIED"),
        ]

    def test_holds_no_secret_and_no_content(self, caplog, stripe, wechat, alipay):
        caplog.set_level(logging.DEBUG)
        for sender in (stripe, wechat, alipay):
            sender.send("01")
        stripe.send("01", header="t=1,v1=forged")
        alipay.send("12")
        wechat.send("09")

        hidden = [
            Stripe.secret,
            WeChat.api_key,
            "pi_T0001",
            "oTEST00000000000000000000001",
            "2088000000000001",
        ]
        assert [text for text in (*hidden, "forged", "bm90LXRoZS1z") if text in caplog.text] == []
