"""WeChat Pay's notices, to the expected outcome of each."""

import json
import time
from datetime import datetime

import pytest
from django.utils import timezone

from idempotency.transitions import InvalidTransition
from orders.models import Order
from orders.services import ship_order
from payments.models import Notice, Refund

from .senders import WeChat, key_pair, public_pem
from .shop import State, fates, nothing_is_stored, records, state, waits_for_people

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("order")]

TRANSACTION = "4200000000202411040000000001"
PENDING = State()
PAID = State(status="PAID", paid=3980, payments=(TRANSACTION,))
REFUNDED = State(
    status="REFUNDED", paid=3980, payments=(TRANSACTION,), refunded=3980, refunds=(3980,), stock=100
)


def is_failure(answer, status):
    return (answer.status_code, answer.json()["code"]) == (status, "FAIL")


class TestPaid:
    def test_pays_the_order(self, wechat):
        assert wechat.is_ack(wechat.send("01"))
        assert (state(), fates(), records()) == (PAID, ["APPLIED"], 1)
        assert Order.objects.get().paid_at.isoformat() == "2024-11-04T06:00:05+00:00"

    def test_pays_it_once_however_often_it_is_told(self, wechat, caplog):
        """WEB-13: first and repeated answers are alike."""
        answers = [wechat.send(name) for name in ("01", "02", "02")]

        assert all(map(wechat.is_ack, answers))
        assert not any("Content-Type" in answer.headers for answer in answers)
        assert (state(), fates(), records()) == (PAID, ["APPLIED"], 1)
        assert "other content" not in caplog.text

    def test_pays_it_once_under_two_notice_numbers(self, wechat):
        """WEB-03"""
        assert all(wechat.is_ack(wechat.send(name)) for name in ("01", "03"))
        assert (state(), fates()) == (PAID, ["APPLIED", "NOTHING_NEW"])

    def test_compares_the_total_and_not_what_coupons_left(self, wechat):
        amount = {"total": 3980, "payer_total": 2980, "currency": "CNY", "payer_currency": "CNY"}
        assert wechat.is_ack(wechat.send("01", resource={"amount": amount}))
        assert state() == PAID

    @pytest.mark.parametrize("trade_state", ["USERPAYING", "NOTPAY", "CLOSED", "REVOKED", "REFUND", "", None])
    def test_is_decided_by_the_state_and_not_by_the_name(self, wechat, trade_state):
        assert wechat.is_ack(wechat.send("12", resource={"trade_state": trade_state}))
        assert (state(), fates()) == (PENDING, ["NOTHING_NEW"])

    @pytest.mark.parametrize("zone", ["+23:59", "-23:59", "+08:00:30"])
    def test_is_at_the_time_that_is_told_in_whatever_zone(self, wechat, zone):
        told = f"2024-11-04T14:00:05{zone}"
        assert wechat.is_ack(wechat.send("01", resource={"success_time": told}))
        assert Order.objects.get().paid_at == datetime.fromisoformat(told)

    def test_is_not_after_a_failed_attempt(self, wechat):
        assert wechat.is_ack(wechat.send("12", resource={"trade_state": "PAYERROR"}))
        assert state() == State(failed=1)

        assert wechat.is_ack(wechat.send("01"))
        assert state() == PAID


class TestRefunded:
    def test_after_it_is_paid(self, wechat):
        assert all(wechat.is_ack(wechat.send(name)) for name in ("01", "04", "04"))
        assert state() == REFUNDED
        assert Refund.objects.values_list("refund_no", "provider_refund_no").get() == (
            "RF-9",
            "5030000000001",
        )

    def test_before_it_is_paid(self, wechat):
        """WEB-04"""
        assert wechat.is_ack(wechat.send("04"))
        assert (state(), fates()) == (PENDING, ["PARKED"])

        assert wechat.is_ack(wechat.send("01"))
        assert state() == REFUNDED
        with pytest.raises(InvalidTransition):
            ship_order(order=Order.objects.get(), now=timezone.now())

    def test_in_parts_that_add_up(self, wechat):
        wechat.send("01")
        for number, part in enumerate((1000, 2980)):
            amount = {"total": 3980, "refund": part, "payer_total": 3980, "payer_refund": part}
            told = {"amount": amount, "out_refund_no": f"RF-{number}", "refund_id": f"50{number}"}
            assert wechat.is_ack(wechat.send("04", resource=told, event_id=f"EV-{number}"))

        assert (state().refunded, state().refunds, state().status) == (3980, (1000, 2980), "REFUNDED")

    def test_with_another_amount_under_one_number(self, wechat):
        for name in ("01", "04"):
            wechat.send(name)
        amount = {"total": 3980, "refund": 1, "payer_total": 3980, "payer_refund": 1}
        assert wechat.is_ack(wechat.send("04", resource={"amount": amount}, event_id="EV-other"))
        assert (state(), fates()) == (REFUNDED, ["APPLIED", "APPLIED", "MISMATCHED"])

    @pytest.mark.parametrize("status", ["ABNORMAL", "CLOSED", "PROCESSING", None])
    def test_is_not_by_a_refund_that_failed(self, wechat, status):
        wechat.send("01")
        assert wechat.is_ack(wechat.send("04", resource={"refund_status": status}))
        assert (state(), fates()) == (PAID, ["APPLIED", "NOTHING_NEW"])


class TestNotTaken:
    def test_a_refund_that_no_database_could_add_up(self, wechat):
        partly = {"amount": {"total": 3980, "refund": 1000}}
        largest = {"amount": {"total": 3980, "refund": 2**62 - 1}, "out_refund_no": "RF-10"}
        wechat.send("01")
        wechat.send("04", resource=partly)

        assert wechat.is_ack(wechat.send("04", resource=largest, event_id="EV-2024-0005"))
        assert (state().refunds, fates()) == ((1000,), ["APPLIED", "APPLIED", "MISMATCHED"])

    @pytest.mark.parametrize(("name", "told"), [("05", "0.01 CNY"), ("07", "39.80 HKD")])
    def test_another_amount_or_currency(self, wechat, name, told):
        """WEB-10, WEB-11"""
        assert all(wechat.is_ack(wechat.send(name)) for _ in range(2))
        assert (state(), fates()) == (PENDING, ["MISMATCHED"])
        notice = waits_for_people()
        assert (notice.amount, notice.expected) == (told, "39.80 CNY")

    def test_an_unknown_order(self, wechat):
        """WEB-15"""
        assert all(wechat.is_ack(wechat.send("06")) for _ in range(3))
        assert (state(), fates(), Order.objects.count()) == (PENDING, ["UNMATCHED"], 1)

    @pytest.mark.parametrize(
        "who", [{"mchid": "1900000002"}, {"appid": "wx0000000000000002"}, {"mchid": None}]
    )
    def test_somebody_elses(self, wechat, who):
        answers = [wechat.send("01", resource=who) for _ in range(2)]

        assert all(is_failure(answer, 400) for answer in answers)
        assert (state(), fates()) == (PENDING, ["FOREIGN"])

    @pytest.mark.parametrize(
        "told",
        [
            {"out_trade_no": None},
            {"out_trade_no": 7},
            {"transaction_id": ""},
            {"amount": None},
            {"amount": {"total": "3980", "currency": "CNY"}},
            {"amount": {"total": 39.80, "currency": "CNY"}},
            {"success_time": "yesterday"},
            {"success_time": "2024-11-04T14:00:05"},
            {"success_time": "9999-12-31T23:59:59+08:00"},
            {"success_time": "0001-01-01T00:00:00+14:00"},
            {"success_time": "1969-12-31T23:59:59Z"},
            {"amount": {"total": 3980, "currency": "ß" * 64}},
            {"amount": {"total": 3980, "currency": "人民币"}},
            {"amount": {"total": 2**62, "currency": "CNY"}},
            {"refund_status": "SUCCESS", "out_refund_no": "RF", "refund_id": "1", "amount": {"refund": 0}},
            {
                "refund_status": "SUCCESS",
                "out_refund_no": "R" * 65,
                "refund_id": "1",
                "amount": {"refund": 1},
            },
            {
                "refund_status": "SUCCESS",
                "out_refund_no": "RF",
                "refund_id": "1" * 65,
                "amount": {"refund": 1},
            },
        ],
    )
    def test_what_says_nothing(self, wechat, told):
        assert is_failure(wechat.send("01", resource=told), 400)
        assert nothing_is_stored()
        assert state() == PENDING

    def test_what_no_key_opens(self, wechat):
        wechat.api_key = "f" * 32
        assert is_failure(wechat.send("01"), 400)
        assert nothing_is_stored()

    @pytest.mark.parametrize(
        "sealed",
        [
            {"algorithm": "AES"},
            {"ciphertext": "é"},
            {"ciphertext": ""},
            {"ciphertext": None},
            {"nonce": None},
            {"nonce": "x"},
            {"associated_data": "other"},
        ],
    )
    def test_what_cannot_be_opened(self, wechat, sealed):
        body, headers = wechat.message("01")
        envelope = json.loads(body)
        envelope["resource"] |= sealed
        body = json.dumps(envelope).encode()
        headers["Wechatpay-Signature"] = wechat.sign(headers, body)

        assert is_failure(wechat.post(body, "application/json", headers), 400)
        assert nothing_is_stored()


class TestSignature:
    @pytest.mark.parametrize("name", ["08", "09", "10", "11"])
    def test_that_is_false(self, wechat, name, caplog):
        """WEB-07, WEB-08, WEB-09: an old stamp, a false one, none, and the provider's own probe."""
        forged = wechat.send(name, event_id="EV-2024-0001")

        assert is_failure(forged, 401)
        assert not any(record.levelname == "ERROR" or record.exc_info for record in caplog.records)
        assert nothing_is_stored()
        assert state() == PENDING

        assert wechat.is_ack(wechat.send("01"))
        assert state() == PAID

    @pytest.mark.parametrize(
        "headers",
        [
            {"Wechatpay_Timestamp": str(int(time.time()) - 600)},
            {"Wechatpay_Timestamp": ""},
            {"Wechatpay_Nonce": "another"},
            {"Wechatpay_Nonce": ""},
            {"Wechatpay_Serial": "UNKNOWN"},
            {"Wechatpay_Serial": ""},
            {"Wechatpay_Signature": "%%%"},
            {"Wechatpay_Signature_Type": "WECHATPAY2-SM2-WITH-SM3"},
        ],
    )
    def test_with_another_header_is_false(self, wechat, headers):
        assert is_failure(wechat.send("01", **headers), 401)
        assert nothing_is_stored()

    def test_is_over_the_bytes_as_they_came(self, wechat):
        """WEB-14"""
        body, headers = wechat.message("01")
        assert is_failure(
            wechat.post(json.dumps(json.loads(body)).encode(), "application/json", headers), 401
        )
        assert wechat.is_ack(wechat.post(body, "application/json", headers))
        assert json.loads(Notice.objects.get().content)["resource"]["trade_state_desc"] == "支付成功"

    def test_cannot_be_checked_without_a_key(self, wechat, configured):
        configured["wechat"]["platform_keys"] = {}
        assert is_failure(wechat.send("01"), 401)
        assert nothing_is_stored()

    def test_is_checked_by_the_key_that_its_serial_names(self, configured):
        configured["wechat"]["platform_keys"] |= {"NEW": public_pem("wechat-new")}

        assert WeChat.is_ack(WeChat(serial="NEW", key="wechat-new").send("01"))
        assert WeChat.is_ack(WeChat().send("03"))
        assert is_failure(WeChat(serial="NEW").send("04"), 401)
        assert state() == PAID

    def test_is_checked_by_a_certificate(self, wechat, configured):
        configured["wechat"]["platform_keys"] = {wechat.serial: _certificate(wechat.key)}
        assert wechat.is_ack(wechat.send("01"))

    def test_content_is_opened_by_the_old_and_the_new_key(self, configured):
        configured["wechat"]["api_keys"] = ["n" * 32, WeChat.api_key]

        assert WeChat.is_ack(WeChat(api_key="n" * 32).send("01"))
        assert WeChat.is_ack(WeChat().send("04"))
        assert state() == REFUNDED

    def test_is_fresh_in_the_providers_own_repeat(self, wechat):
        """WEB-09"""
        assert wechat.is_ack(wechat.send("01"))
        body, headers = wechat.message("02")
        headers |= {"Wechatpay-Timestamp": str(int(time.time()) - 100), "Wechatpay-Nonce": "fresh"}
        headers["Wechatpay-Signature"] = wechat.sign(headers, body)

        assert wechat.is_ack(wechat.post(body, "application/json", headers))
        assert (state(), records()) == (PAID, 1)


def _certificate(name):
    from datetime import timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding

    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Tenpay.com")])
    now = timezone.now()
    builder = x509.CertificateBuilder(
        subject, subject, key_pair(name).public_key(), 1, now, now + timedelta(days=1)
    )
    return builder.sign(key_pair(name), SHA256()).public_bytes(Encoding.PEM).decode()
