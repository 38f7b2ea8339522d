"""Answers that the provider does not document: whoever gives them, money may have moved."""

from datetime import timedelta

import httpx
import pytest

from payments.providers.base import Declined, NoAnswer, Unreachable
from payments.providers.sandbox import Sandbox
from shop.exchanges import LIMIT
from tests.dripping import dripping
from tests.notifications.stubs import http_stub

MONEY = {"amount_minor": 3980, "currency": "CNY"}
CHARGED = {"payment_no": "P1", "paid_at": "2026-11-30T12:00:00+00:00", **MONEY}


@pytest.fixture
def stub():
    with http_stub() as stub:
        yield stub


@pytest.fixture
def sandbox(settings, stub):
    settings.SANDBOX_URL = stub.url
    return Sandbox("alipay")


def charge(sandbox):
    return sandbox.charge(key="K1", order_no="O1", **MONEY)


def ways(sandbox):
    return [
        lambda: charge(sandbox),
        lambda: sandbox.find(key="K1"),
        lambda: sandbox.close(key="K1"),
        lambda: sandbox.refund(payment_no="P1", number="R1", **MONEY),
    ]


class TestDocument:
    @pytest.mark.parametrize(
        "body", [b"", b"<html>", b"[]", b"null", b"{}", b"[" * 60_000, {"charge": {}}, {"charge": "x"}]
    )
    def test_that_is_none_leaves_it_in_doubt(self, sandbox, stub, body):
        stub.answers = [(200, body)] * 4
        for ask in ways(sandbox):
            with pytest.raises(NoAnswer):
                ask()

    def test_of_what_nobody_knows_is_null(self, sandbox, stub):
        stub.answers = [(200, {"charge": None})] * 3
        assert [sandbox.find(key="K1"), sandbox.close(key="K1")] == [None, None]
        with pytest.raises(NoAnswer):
            charge(sandbox)


class TestStatus:
    @pytest.mark.parametrize(
        ("answer", "error"),
        [
            ((402, {"code": "declined"}), Declined),
            *(((status, b""), NoAnswer) for status in (301, 408, 409, 425, 429, 499, 500, 502, 503, 504)),
            ((429, b"", {"Retry-After": "3"}), Unreachable),
            ((400, b""), httpx.HTTPStatusError),  # our mistake
            ((403, b""), httpx.HTTPStatusError),
        ],
    )
    def test_tells_no_from_not_now_and_perhaps(self, sandbox, stub, answer, error):
        stub.answers = [answer]
        with pytest.raises(error):
            charge(sandbox)


class TestEndless:
    @pytest.mark.parametrize(
        ("head", "tail"),
        [
            (b"HTTP/1.1 402 Declined\r\n\r\n", b"declined".ljust(60)),
            (b"HTTP/1.1 402 Declined\r\nContent-Length: 0\r\nX-Slow: ", b"x" * 60 + b"\r\n\r\n"),
        ],
    )
    def test_drip_is_cut_off(self, settings, head, tail):
        settings.PAYMENTS_CONNECT_TIMEOUT = timedelta(seconds=0.2)
        settings.PAYMENTS_READ_TIMEOUT = timedelta(seconds=0.3)
        with dripping(head, tail) as url:
            settings.SANDBOX_URL = url
            with pytest.raises(NoAnswer):
                charge(Sandbox("alipay"))

    def test_answer_is_not_read_to_its_end(self, sandbox, stub):
        stub.answers = [(200, {"charge": {**CHARGED, "more": "x" * LIMIT}}), (200, {"charge": CHARGED})]
        with pytest.raises(NoAnswer):
            charge(sandbox)
        assert charge(sandbox).payment_no == "P1"
