"""Stripe's events, to the expected outcome of each."""

import json
import time

import pytest
from django.utils import timezone

from idempotency.models import IdempotencyRecord
from idempotency.transitions import InvalidTransition
from orders.models import Order
from orders.services import cancel_order, ship_order
from payments import notices
from payments.models import Fate, Notice
from payments.reconciling import reconcile

from .senders import file
from .shop import State, fates, nothing_is_stored, place, records, state, waits_for_people

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("order_in_dollars")]

PENDING = State()
PAID = State(status="PAID", paid=3980, payments=("pi_T0001",))
REFUNDED = State(
    status="REFUNDED", paid=3980, payments=("pi_T0001",), refunded=3980, refunds=(3980,), stock=100
)


def partly_refunded(*refunds):
    return State(
        status="PAID", paid=3980, payments=("pi_T0001",), refunded=sum(refunds), refunds=tuple(refunds)
    )


class TestPaid:
    def test_pays_the_order(self, stripe):
        assert stripe.is_ack(stripe.send("01"))
        assert (state(), fates(), records()) == (PAID, ["APPLIED"], 1)

    def test_pays_it_once_however_often_it_is_told(self, stripe):
        """WEB-01"""
        answers = [stripe.send(name) for name in ("01", "02", "02", "02")]
        paid_at = Order.objects.get().paid_at

        assert {(answer.status_code, answer.content) for answer in answers} == {(200, b"")}
        assert [answer.headers.get("Idempotent-Replayed") for answer in answers] == [
            None,
            "true",
            "true",
            "true",
        ]
        assert (state(), fates(), records()) == (PAID, ["APPLIED"], 1)
        assert Order.objects.get().paid_at == paid_at

    def test_pays_it_once_under_two_event_numbers(self, stripe):
        """WEB-03"""
        answers = [stripe.send(name) for name in ("01", "03")]

        assert all(map(stripe.is_ack, answers))
        assert (state(), fates()) == (PAID, ["APPLIED", "NOTHING_NEW"])

    def test_is_the_same_in_other_bytes(self, stripe, caplog):
        """WEB-14: same content, other spelling."""
        answers = [stripe.send(name) for name in ("01", "04")]

        assert all(map(stripe.is_ack, answers))
        assert (state(), fates(), records()) == (PAID, ["APPLIED"], 1)
        assert "other content" not in caplog.text

    def test_with_other_content_under_a_known_number_is_logged_and_counted(self, stripe, caplog, heard):
        answers = [stripe.send("01"), stripe.send("", body=file("stripe", "01").replace(b"3980", b"9900"))]

        assert all(map(stripe.is_ack, answers))
        assert (state(), fates(), records()) == (PAID, ["APPLIED"], 1)
        assert "other content under a known number" in caplog.text
        assert [event[2:] for event in heard if event[0] == "refused"] == [("idempotency_key_reused",)]

    def test_of_yen_has_no_decimals(self, stripe):
        place("SO-2024-JPY1", amount_minor=10000, currency="JPY")

        assert stripe.is_ack(stripe.send("11"))
        paid = state("SO-2024-JPY1")
        assert (paid.status, paid.paid) == ("PAID", 10000)

    def test_of_a_cancelled_order_is_to_be_given_back(self, stripe):
        cancel_order(order=Order.objects.get(), now=timezone.now())

        assert stripe.is_ack(stripe.send("01"))
        assert state() == State(status="CANCELLED", due=3980, payments=("pi_T0001",), stock=100)
        assert fates() == ["REFUND_DUE"]

    def test_that_comes_late_moves_nothing_back(self, stripe):
        """WEB-21"""
        for name in ("01", "05"):
            stripe.send(name)
        late = stripe.send("03")

        assert stripe.is_ack(late)
        assert (state(), fates()) == (REFUNDED, ["APPLIED", "APPLIED", "LATE"])

    def test_text_of_any_language_is_verified_and_kept_as_it_was_sent(self, stripe):
        """WEB-14"""
        event = json.loads(file("stripe", "01"))
        event["data"]["object"]["description"] = "双十一 A&B=茶 +10% <b>\\"
        body = json.dumps(event, ensure_ascii=False, indent=1).encode()

        assert stripe.is_ack(stripe.send("", body=body))
        assert json.loads(Notice.objects.get().content) == event


class TestRefunded:
    def test_in_full(self, stripe):
        assert all(stripe.is_ack(stripe.send(name)) for name in ("01", "05", "05"))
        assert state() == REFUNDED

    def test_before_it_is_paid(self, stripe):
        """WEB-04: the refund waits for its payment."""
        assert stripe.is_ack(stripe.send("05"))
        assert (state(), fates()) == (PENDING, ["PARKED"])

        assert stripe.is_ack(stripe.send("01"))
        assert state() == REFUNDED
        assert sorted(fates()) == ["APPLIED", "APPLIED"]
        with pytest.raises(InvalidTransition):
            ship_order(order=Order.objects.get(), now=timezone.now())

    def test_before_it_is_paid_without_the_orders_number(self, stripe):
        event = json.loads(file("stripe", "05"))
        event["data"]["object"]["metadata"] = {}
        stripe.send("", body=json.dumps(event).encode())
        assert fates() == ["UNMATCHED"]

        stripe.send("01")
        assert state() == REFUNDED

    def test_by_a_running_total(self, stripe):
        """WEB-25"""
        stripe.send("01")
        seen = []
        for name in ("12", "13", "12"):
            assert stripe.is_ack(stripe.send(name))
            seen.append(state())

        assert seen == [partly_refunded(1000), partly_refunded(1000, 1500), partly_refunded(1000, 1500)]

    def test_by_an_older_total_under_another_number(self, stripe):
        """WEB-25"""
        for name in ("01", "13", "12"):
            stripe.send(name)

        assert (state(), fates()) == (partly_refunded(2500), ["APPLIED", "APPLIED", "NOTHING_NEW"])

    def test_what_came_in_for_a_cancelled_order(self, stripe):
        cancel_order(order=Order.objects.get(), now=timezone.now())
        for name in ("01", "05", "05"):
            assert stripe.is_ack(stripe.send(name))

        assert state() == State(status="CANCELLED", payments=("pi_T0001",), stock=100)
        assert fates() == ["REFUND_DUE", "APPLIED"]

    def test_a_part_of_what_came_in_for_a_cancelled_order(self, stripe):
        cancel_order(order=Order.objects.get(), now=timezone.now())
        for name in ("01", "12"):
            assert stripe.is_ack(stripe.send(name))

        assert state() == State(status="CANCELLED", due=3980, payments=("pi_T0001",), stock=100)
        assert fates() == ["REFUND_DUE", "MISMATCHED"]

    def test_in_another_currency(self, stripe):
        stripe.send("01")
        assert stripe.is_ack(stripe.send("", body=file("stripe", "05").replace(b"usd", b"eur")))
        assert (state(), fates()) == (PAID, ["APPLIED", "MISMATCHED"])

    def test_of_another_orders_payment(self, stripe):
        place("SO-2024-0002", amount_minor=3500, currency="USD")
        stripe.send("01")
        assert stripe.is_ack(stripe.send("", body=file("stripe", "05").replace(b'0001"}', b'0002"}')))
        assert fates() == ["APPLIED", "MISMATCHED"]
        assert (state().refunds, state("SO-2024-0002").refunds) == ((), ())

    def test_more_than_was_paid(self, stripe):
        stripe.send("01")
        body = file("stripe", "05").replace(b'"amount_refunded":3980', b'"amount_refunded":3981')

        assert stripe.is_ack(stripe.send("", body=body))
        assert (state(), fates()) == (PAID, ["APPLIED", "MISMATCHED"])


class TestFailed:
    def test_late(self, stripe):
        """WEB-04"""
        assert all(stripe.is_ack(stripe.send(name)) for name in ("01", "06"))
        assert (state(), fates()) == (PAID, ["APPLIED", "LATE"])

    def test_and_then_paid(self, stripe):
        assert stripe.is_ack(stripe.send("06"))
        assert state() == State(failed=1)

        assert stripe.is_ack(stripe.send("01"))
        assert state() == PAID


class TestMismatch:
    @pytest.mark.parametrize(
        ("name", "told"), [("07", "0.01 USD"), ("08", "3980.00 USD"), ("09", "3980 JPY")]
    )
    def test_is_recorded_and_acknowledged(self, stripe, name, told):
        """WEB-10, WEB-11"""
        answers = [stripe.send(name) for _ in range(2)]

        assert all(map(stripe.is_ack, answers))
        assert (state(), fates()) == (PENDING, ["MISMATCHED"])
        notice = waits_for_people()
        assert (notice.amount, notice.expected) == (told, "39.80 USD")

    def test_does_not_keep_the_right_amount_out(self, stripe):
        for name in ("07", "01"):
            stripe.send(name)
        assert state() == PAID


class TestUnknownOrder:
    @pytest.mark.parametrize("name", ["10", "15"])
    def test_is_recorded_once(self, stripe, name):
        """WEB-15"""
        answers = [stripe.send(name) for _ in range(3)]

        assert all(map(stripe.is_ack, answers))
        assert (fates(), Order.objects.count(), state()) == (["UNMATCHED"], 1, PENDING)

    def test_that_comes_later_is_paid_then(self, stripe):
        """WEB-05"""
        stripe.send("10")
        place("SO-2024-NOPE", currency="USD")

        assert [finding.result for finding in reconcile()] == ["applied"]
        assert list(reconcile()) == []
        assert (state("SO-2024-NOPE").status, fates()) == ("PAID", ["APPLIED"])
        assert Notice.objects.get().settled_at

    def test_that_comes_later_is_paid_before_it_is_refunded(self, stripe):
        for name in ("05", "10"):
            stripe.send(
                "",
                body=file("stripe", name)
                .replace(b"SO-2024-0001", b"SO-LATER")
                .replace(b"SO-2024-NOPE", b"SO-LATER")
                .replace(b"pi_T0010", b"pi_T0001"),
            )
        assert fates() == ["UNMATCHED", "UNMATCHED"]
        place("SO-LATER", currency="USD")

        assert [finding.result for finding in reconcile()] == ["applied"]
        assert (state("SO-LATER").status, fates()) == ("REFUNDED", ["APPLIED", "APPLIED"])

    def test_that_comes_later_and_is_not_paid_yet_is_waited_for(self, stripe):
        stripe.send("", body=file("stripe", "05").replace(b"SO-2024-0001", b"SO-LATER"))
        place("SO-LATER", currency="USD")

        assert list(reconcile()) == []
        assert (fates(), Notice.objects.get().settled_at) == (["PARKED"], None)


class TestOtherEvents:
    def test_have_no_effect(self, stripe):
        assert stripe.is_ack(stripe.send("14"))
        assert (state(), fates()) == (PENDING, [])

    def test_that_are_not_json_are_refused(self, stripe):
        answer = stripe.send("16")

        assert (answer.status_code, answer.content) == (400, b"malformed_event")
        assert nothing_is_stored()

    @pytest.mark.parametrize(
        "body",
        [
            b"[]",
            b"null",
            b"[" * 5000,
            b"\xff\xfe\xfd",
            b"{}",
            b'{"id": 7, "type": "payment_intent.succeeded", "livemode": true}',
            file("stripe", "01").replace(b'"id":"evt_T0001"', b'"id":""'),
            file("stripe", "01").replace(b'"id":"evt_T0001"', b'"id":"a\\u0000b"'),
            file("stripe", "01").replace(b'"id":"pi_T0001"', b'"id":"%s"' % (b"p" * 65)),
            file("stripe", "01").replace(b'"amount_received":3980', b'"amount_received":39.80'),
            file("stripe", "01").replace(b'"amount_received":3980', b'"amount_received":-1'),
            file("stripe", "01").replace(b'"amount_received":3980', b'"amount_received":NaN'),
            file("stripe", "01").replace(b'"amount_received":3980', b'"amount_received":1E%s' % (b"9" * 30)),
            file("stripe", "01").replace(b'"amount_received":3980', b'"amount_received":true'),
            file("stripe", "01").replace(b'"created":1730700010', b'"created":99999999999999999'),
            file("stripe", "01").replace(b'"created":1730700010', b'"created":253402300799'),
            file("stripe", "01").replace(b'"created":1730700010', b'"created":7258118400'),
            file("stripe", "01").replace(b'"created":1730700010', b'"created":-62135596800'),
            file("stripe", "01").replace(b'"created":1730700010', b'"created":-1'),
            file("stripe", "01").replace(b'"created":1730700010', b'"created":0'),
            file("stripe", "01").replace(b'"created":1730700010', b'"created":"1730700010"'),
            file("stripe", "01").replace(b'"amount_received":3980', b'"amount_received":%d' % 2**62),
            file("stripe", "01").replace(b'"usd"', '"{}"'.format("ß" * 64).encode()),
            file("stripe", "01").replace(b'"usd"', b'"usdollar"'),
            file("stripe", "01").replace(b'"usd"', '"uſd"'.encode()),
            file("stripe", "05").replace(b'"usd"', '"{}"'.format("ß" * 64).encode()),
            file("stripe", "01").replace(b'"type":"', b'"type":"%s' % (b"t" * 65)),
            file("stripe", "01").replace(b'"usd"', b"null"),
        ],
    )
    def test_that_say_nothing_are_refused(self, stripe, body):
        assert stripe.send("", body=body).status_code == 400
        assert nothing_is_stored()
        assert state() == PENDING

    @pytest.mark.parametrize("code", ["usd", "USD", "Usd"])
    def test_spell_the_currency_as_they_like(self, stripe, code):
        assert stripe.is_ack(stripe.send("", body=file("stripe", "01").replace(b"usd", code.encode())))
        assert state() == PAID

    def test_of_the_test_mode_are_refused(self, stripe):
        body = file("stripe", "01").replace(b'"livemode":true', b'"livemode":false')
        answers = [stripe.send("", body=body) for _ in range(2)]

        assert [answer.status_code for answer in answers] == [400, 400]
        assert (state(), fates()) == (PENDING, ["FOREIGN"])

    def test_hold_half_a_surrogate_pair(self, stripe):
        body = file("stripe", "01").replace(b'"request":', b'"note":"\\ud800 \\u0000","request":')

        assert stripe.is_ack(stripe.send("", body=body))
        assert json.loads(Notice.objects.get().content)["note"] == "\ud800 \0"


class TestSignature:
    """WEB-07, WEB-08, WEB-09: refused, nothing is stored, and the real one works afterwards."""

    @pytest.mark.parametrize(
        "forge",
        [
            lambda stripe, body: stripe.sign(body, secret="whsec_of_somebody_else"),
            lambda stripe, body: None,
            lambda stripe, body: "",
            lambda stripe, body: stripe.sign(body, at=time.time() - 600),
            lambda stripe, body: stripe.sign(body, at=time.time() + 600),
            lambda stripe, body: stripe.sign(body, scheme="v0"),
            lambda stripe, body: stripe.sign(body).split(",")[0],
            lambda stripe, body: stripe.sign(body).split(",")[1],
            lambda stripe, body: stripe.sign(body).replace("t=", "t=0x"),
            lambda stripe, body: "t=,v1=",
            lambda stripe, body: "t=²,v1=é",
            lambda stripe, body: f"t={time.time():.0f},v1=é",
            lambda stripe, body: stripe.sign(body + b" "),
            lambda stripe, body: stripe.sign(body) + ",t=1",
        ],
    )
    def test_that_is_false(self, stripe, forge):
        body = file("stripe", "01")
        forged = stripe.send("01", header=forge(stripe, body))

        assert (forged.status_code, forged.content) == (401, b"invalid_signature")
        assert nothing_is_stored()
        assert state() == PENDING

        assert stripe.is_ack(stripe.send("01"))
        assert state() == PAID

    @pytest.mark.parametrize("secrets", [[], [""]])
    def test_cannot_be_checked_without_a_secret(self, stripe, configured, secrets):
        configured["stripe"]["secrets"] = secrets
        body = file("stripe", "01")

        assert stripe.send("01", header=stripe.sign(body)).status_code == 401
        assert stripe.send("01", header=stripe.sign(body, secret="\0")).status_code == 401
        assert nothing_is_stored()

    def test_by_the_old_and_the_new_secret_counts(self, stripe, configured):
        configured["stripe"]["secrets"] = ["whsec_new", stripe.secret]
        body = file("stripe", "01")
        answers = [stripe.send("01"), stripe.send("01", header=stripe.sign(body, secret="whsec_new"))]

        assert all(map(stripe.is_ack, answers))
        assert (state(), records()) == (PAID, 1)

    def test_may_be_one_of_several(self, stripe):
        """Stripe signs with each secret of a rotation."""
        body = file("stripe", "01")
        header = f"{stripe.sign(body)},v1={'0' * 64},v0=abc"

        assert stripe.is_ack(stripe.send("01", header=header))

    def test_is_fresh_in_the_providers_own_repeat(self, stripe):
        """WEB-09"""
        assert all(stripe.is_ack(stripe.send("01", at=time.time() - age)) for age in (200, 0))
        assert records() == 1

    def test_is_the_first_thing_that_is_looked_at(self, stripe):
        assert stripe.send("16", header="").status_code == 401


class TestFailure:
    def test_leaves_nothing_behind_and_the_repeat_works(self, stripe, monkeypatch):
        """WEB-06"""
        settle = notices.services.settle_payment

        def break_down(**kwargs):
            settle(**kwargs)
            raise RuntimeError("the database is down for a moment")

        stripe.client.raise_request_exception = False
        with monkeypatch.context() as patch:
            patch.setattr(notices.services, "settle_payment", break_down)
            failed = stripe.send("01")
        assert failed.status_code == 500
        assert nothing_is_stored()
        assert state() == PENDING

        assert stripe.is_ack(stripe.send("01"))
        assert (state(), records()) == (PAID, 1)

    def test_of_a_get(self, stripe):
        assert stripe.client.get(stripe.path).status_code == 405


def test_is_kept_for_ever(stripe):
    stripe.send("01")
    record = IdempotencyRecord.objects.get()

    assert (record.operation, record.scope, record.key) == ("webhooks.stripe", "", "evt_T0001")
    assert record.expires_at is None


def test_fate_has_room_in_its_column():
    assert max(map(len, Fate.values)) <= 11
