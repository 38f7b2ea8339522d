"""Alipay's notices, to the expected outcome of each."""

import json

import pytest
from django.utils import timezone

from orders.models import Order
from orders.services import ship_order
from payments.models import Notice, Refund
from payments.services import begin_refund

from .senders import public_pem
from .shop import State, fates, nothing_is_stored, records, state, waits_for_people

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("order")]

TRADE = "2024110422000000000001"
PENDING = State()
PAID = State(status="PAID", paid=3980, payments=(TRADE,))
PARTLY = State(status="PAID", paid=3980, payments=(TRADE,), refunded=1000, refunds=(1000,))


def refunded(*refunds):
    return State(
        status="REFUNDED", paid=3980, payments=(TRADE,), refunded=3980, refunds=tuple(refunds), stock=100
    )


class TestPaid:
    def test_pays_the_order(self, alipay):
        assert alipay.is_ack(alipay.send("01"))
        assert (state(), fates(), records()) == (PAID, ["APPLIED"], 1)
        assert Order.objects.get().paid_at.isoformat() == "2024-11-04T06:00:05+00:00"

    def test_again_later_changes_nothing(self, alipay, caplog):
        """WEB-13: first and repeated answers are alike."""
        answers = [alipay.send(name) for name in ("01", "02")]

        assert all(map(alipay.is_ack, answers))
        assert (state(), fates(), records()) == (PAID, ["APPLIED"], 1)
        assert "other content" not in caplog.text

    def test_and_finished_three_months_later(self, alipay):
        assert all(alipay.is_ack(alipay.send(name)) for name in ("01", "03"))
        assert state() == PAID

    def test_and_finished_after_it_is_shipped(self, alipay):
        alipay.send("01")
        ship_order(order=Order.objects.get(), now=timezone.now())

        assert alipay.is_ack(alipay.send("03"))
        assert state() == State(status="SHIPPED", paid=3980, payments=(TRADE,))

    def test_by_a_finished_trade_first(self, alipay):
        assert alipay.is_ack(alipay.send("03"))
        assert state() == PAID

    def test_by_a_notice_that_gives_nothing_back(self, alipay):
        assert alipay.is_ack(alipay.send("01", refund_fee="0.00"))
        assert state() == PAID

    def test_is_not_while_the_buyer_is_waited_for(self, alipay):
        assert alipay.is_ack(alipay.send("06"))
        assert state() == PENDING

        assert alipay.is_ack(alipay.send("01"))
        assert alipay.is_ack(alipay.send("06", notify_id="another"))
        assert state() == PAID

    def test_by_an_amount_in_another_spelling(self, alipay):
        """WEB-10"""
        assert alipay.is_ack(alipay.send("14"))
        assert state() == PAID


class TestRefunded:
    def test_in_part_is_no_second_payment(self, alipay):
        """WEB-12: with the trade still at success."""
        assert all(alipay.is_ack(alipay.send(name)) for name in ("01", "04", "04"))
        assert state() == PARTLY
        assert Refund.objects.get().refund_no == "RF-1"

    def test_in_part_and_then_in_full(self, alipay):
        """WEB-12"""
        for name in ("01", "04", "03", "05", "05"):
            assert alipay.is_ack(alipay.send(name))
        assert state() == refunded(1000, 2980)

    def test_in_full_by_a_closed_trade(self, alipay):
        assert all(alipay.is_ack(alipay.send(name)) for name in ("01", "05"))
        assert state() == refunded(3980)

    def test_in_part_before_it_is_paid(self, alipay):
        """WEB-12: not taken for a payment."""
        assert alipay.is_ack(alipay.send("04"))
        assert (state(), fates()) == (PENDING, ["PARKED"])

        assert alipay.is_ack(alipay.send("01"))
        assert state() == PARTLY

    def test_in_full_before_it_is_paid(self, alipay):
        for name in ("05", "01"):
            assert alipay.is_ack(alipay.send(name))
        assert state() == refunded(3980)

    def test_under_one_number_by_two_notices(self, alipay):
        for name in ("01", "04"):
            alipay.send(name)
        assert alipay.is_ack(alipay.send("04", notify_id="another"))
        assert state() == PARTLY

    def test_as_the_shop_has_asked(self, alipay):
        """The provider knows the shop's refund by order and refund number."""
        alipay.send("01")
        begin_refund(order=Order.objects.get(), refund_no="RF-1", amount_minor=1000, now=timezone.now())

        assert alipay.is_ack(alipay.send("04", out_biz_no="SO-2024-0001-RF-1"))
        assert state() == PARTLY
        assert Refund.objects.get().refund_no == "RF-1"


class TestNotTaken:
    def test_another_amount(self, alipay):
        """WEB-10"""
        assert alipay.is_ack(alipay.send("07"))
        assert (state(), fates()) == (PENDING, ["MISMATCHED"])
        notice = waits_for_people()
        assert (notice.amount, notice.expected) == ("0.01 CNY", "39.80 CNY")

    def test_an_order_in_another_currency(self, alipay):
        Order.objects.update(currency="HKD")
        alipay.send("01")
        assert (state(), fates()) == (PENDING, ["MISMATCHED"])

    def test_an_unknown_order(self, alipay):
        """WEB-15"""
        assert all(alipay.is_ack(alipay.send("08")) for _ in range(3))
        assert (state(), fates(), Order.objects.count()) == (PENDING, ["UNMATCHED"], 1)

    @pytest.mark.parametrize("name", ["09", "10"])
    def test_somebody_elses(self, alipay, name):
        answers = [alipay.send(name) for _ in range(2)]

        assert {(answer.status_code, answer.content) for answer in answers} == {(400, b"fail")}
        assert (state(), fates(), records()) == (PENDING, ["FOREIGN"], 1)

    @pytest.mark.parametrize(
        "changes",
        [
            {"total_amount": "39.801"},
            {"total_amount": "1e3"},
            {"total_amount": "-39.80"},
            {"total_amount": "NaN"},
            {"total_amount": ""},
            {"notify_id": ""},
            {"notify_id": "x" * 65},
            {"out_trade_no": ""},
            {"out_trade_no": "SO\0"},
            {"trade_no": ""},
            {"trade_status": ""},
            {"gmt_payment": "yesterday"},
            {"gmt_payment": "9999-12-31 23:59:59"},
            {"gmt_payment": "0001-01-01T00:00:00+14:00"},
            {"gmt_payment": "", "notify_time": "9999-12-31T23:59:59Z"},
            {"refund_fee": "10.00", "gmt_refund": "1999-12-31 23:59:59"},
            {"refund_fee": "10.00", "out_biz_no": "x" * 65},
            {"refund_fee": "-1"},
            {"total_amount": "1" + "0" * 12},
            {"charset": "klingon"},
        ],
    )
    def test_what_says_nothing(self, alipay, changes):
        answer = alipay.send("01", **changes)

        assert (answer.status_code, answer.content) == (400, b"fail")
        assert nothing_is_stored()
        assert state() == PENDING


class TestSignature:
    def test_is_over_fields_that_are_decoded_once(self, alipay):
        """WEB-14: & = + % and Chinese as they were."""
        assert alipay.is_ack(alipay.send("11"))
        assert state() == PAID
        content = json.loads(Notice.objects.get().content)
        assert content["subject"] == "双十一 A&B=茶 +10%"
        assert content["passback_params"] == "%7B%22user_id%22%3A1%2C%22note%22%3A%22a%26b%22%7D"

    def test_may_be_of_another_charset(self, alipay):
        """WEB-14: nothing is guessed before the check."""
        text = alipay.body("11", charset="gbk", sign="").decode()
        pairs = [pair.partition("=") for pair in text.split("&")]
        recoded = _in_gbk({name: value for name, _, value in pairs}, alipay)

        answer = alipay.post(recoded, "application/x-www-form-urlencoded; charset=gbk", {})
        assert alipay.is_ack(answer)
        assert json.loads(Notice.objects.get().content)["subject"] == "双十一 A&B=茶 +10%"

    @pytest.mark.parametrize(
        ("name", "changes"),
        [
            ("12", {}),
            ("13", {}),
            ("01", {"sign": ""}),
            ("01", {"sign": "é"}),
            ("01", {"sign": "not base64!"}),
            ("01", {"sign_type": "RSA"}),
            ("01", {"sign_type": ""}),
        ],
    )
    def test_that_is_false(self, alipay, name, changes):
        """WEB-07, WEB-08"""
        forged = alipay.send(name, notify_id="20241104002220001", **changes)

        assert (forged.status_code, forged.content) == (401, b"fail")
        assert nothing_is_stored()
        assert state() == PENDING

        assert alipay.is_ack(alipay.send("01"))
        assert state() == PAID

    def test_of_a_field_that_comes_twice_is_false(self, alipay):
        for added in (b"&out_trade_no=SO-2024-0002", b"&total_amount=39.80"):
            answer = alipay.post(alipay.body("01") + added, "application/x-www-form-urlencoded", {})
            assert answer.status_code == 401
        assert nothing_is_stored()

    def test_of_too_many_fields_is_false(self, alipay):
        many = b"&".join(b"f%d=1" % number for number in range(200))
        assert alipay.post(many, "application/x-www-form-urlencoded", {}).status_code == 401

    def test_cannot_be_checked_without_a_key(self, alipay, configured):
        configured["alipay"]["public_keys"] = []

        assert alipay.send("01").status_code == 401
        assert nothing_is_stored()

    def test_by_the_old_and_the_new_key_counts(self, alipay, configured):
        alipay.send("01")
        lines = public_pem("alipay-new").splitlines()
        configured["alipay"]["public_keys"] = ["".join(lines[1:-1]), public_pem("alipay")]

        alipay.key = "alipay-new"
        assert alipay.is_ack(alipay.send("04"))
        alipay.key = "alipay"
        assert alipay.is_ack(alipay.send("03"))
        assert state() == PARTLY

    def test_by_a_key_that_is_not_known_any_more_is_false(self, alipay, configured):
        configured["alipay"]["public_keys"] = [public_pem("alipay-new")]
        assert alipay.send("01").status_code == 401


def _in_gbk(quoted, alipay):
    from urllib.parse import quote_from_bytes, unquote_plus

    fields = {name: unquote_plus(value).encode("gbk") for name, value in quoted.items() if name != "sign"}
    text = b"&".join(
        name.encode() + b"=" + fields[name] for name in sorted(fields) if name != "sign_type" and fields[name]
    )
    fields["sign"] = _sign(text, alipay).encode()
    return "&".join(f"{name}={quote_from_bytes(value, safe='')}" for name, value in fields.items()).encode()


def _sign(text, alipay):
    from .senders import rsa_sign

    return rsa_sign(text, alipay.key)
