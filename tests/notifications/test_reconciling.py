"""``manage.py reconcile_messages``: what was begun is finished once, and nothing is sent by it."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command

from idempotency.leased import Claim
from notifications.models import Window
from notifications.providers import provider
from notifications.reconciling import reconcile
from notifications.tasks import reconcile_messages
from tests.notifications.texting import (
    FAILED,
    SENDING,
    SENT,
    UNKNOWN,
    end_leases,
    post,
    statuses,
    turn_back,
    unfinished,
)
from tests.shopping import shopper

pytestmark = [pytest.mark.django_db, pytest.mark.urls("config.urls")]


@pytest.fixture(autouse=True)
def _shop(texting):
    pass


@pytest.fixture
def alice():
    return shopper("alice")


def receipt(client, phone):
    return post(client, phone, kind="notification", template="order_paid", biz_id=phone)


def findings():
    return [finding.result for finding in reconcile()]


def open_windows():
    return Window.objects.filter(ends_at=None).count()


class TestUnknown:
    @pytest.mark.parametrize("mode", ["silent_after", "error_after"])
    def test_that_was_sent_is_settled_once(self, alice, phone, sandbox, mode):
        sandbox.rule(mode, call="message", phone=phone)
        assert receipt(alice, phone).status_code == 202
        assert [findings(), findings()] == [["sent"], []]
        assert (statuses(), unfinished(), len(sandbox.messages(phone))) == ([SENT], 0, 1)
        assert receipt(alice, phone).json()["data"]["isDuplicate"] is True
        assert len(sandbox.messages(phone)) == 1

    @pytest.mark.parametrize("mode", ["silent_before", "error_before"])
    def test_that_was_not_sent_is_closed_and_its_window_is_free(self, alice, phone, sandbox, mode):
        sandbox.rule(mode, call="message", phone=phone)
        receipt(alice, phone)
        assert [findings(), findings()] == [["sms_not_sent"], []]
        assert (statuses(), unfinished(), open_windows()) == ([FAILED], 0, 0)
        assert sandbox.messages(phone) == []
        assert receipt(alice, phone).json()["data"]["isDuplicate"] is False
        assert len(sandbox.messages(phone)) == 1

    def test_stays_unknown_while_the_provider_is_silent(self, alice, phone, sandbox):
        sandbox.rule("silent_after", call="message", phone=phone)
        sandbox.rule("error_before", call="find", provider="sms", times=2)
        receipt(alice, phone)
        assert [findings() for _ in range(3)] == [["unknown"], ["unknown"], ["sent"]]

    def test_stays_unknown_where_the_provider_cannot_close(self, alice, phone, sandbox):
        sandbox.rule("silent_before", call="message", phone=phone)
        sandbox.rule("error_before", call="close", provider="sms")
        receipt(alice, phone)
        assert (findings(), statuses(), open_windows()) == (["unknown"], [UNKNOWN], 1)

    @pytest.mark.parametrize(
        ("kind", "asked_until"),
        [("notification", timedelta(days=3)), ("verification", timedelta(minutes=10))],
    )
    def test_is_asked_about_while_somebody_cares(self, alice, phone, sandbox, kind, asked_until):
        sandbox.rule("silent_after", call="message", phone=phone)
        sandbox.rule("error_before", call="find", provider="sms", times=0)
        assert post(alice, phone, kind=kind, biz_id=phone).status_code == 202
        turn_back(asked_until - timedelta(minutes=1))
        assert findings() == ["unknown"]
        turn_back(timedelta(minutes=1))
        assert (findings(), statuses(), len(sandbox.messages(phone))) == ([], [UNKNOWN], 1)

    def test_whose_process_died_long_ago_is_finished_all_the_same(self, alice, phone, sandbox, monkeypatch):
        with monkeypatch.context() as context:
            context.setattr("notifications.sending.deliver.run", lambda **asked: exit())
            with pytest.raises(SystemExit):
                post(alice, phone)
        turn_back(timedelta(days=30))
        assert (findings(), statuses()) == (["sms_not_sent"], [FAILED])

    def test_leaves_the_window_of_a_later_text_alone(self, alice, phone, sandbox):
        sandbox.rule("silent_before", call="message", phone=phone)
        post(alice, phone)
        turn_back(timedelta(minutes=1))
        post(alice, phone)
        assert (findings(), statuses()) == (["sms_not_sent"], [FAILED, SENT])
        assert post(alice, phone).json()["data"]["isDuplicate"] is True
        assert len(sandbox.messages(phone)) == 1


class TestCutOff:
    @pytest.fixture
    def cut_off(self, alice, phone, monkeypatch):
        """Let the process die in a step or, with the call done, behind it."""

        def cut_off(name, point):
            original = getattr(Claim, name)

            def killed(claim, *arguments):
                if arguments[0] == point or name == "complete":
                    if name == "call":
                        arguments[1](claim.provider_key(point))
                    raise SystemExit
                return original(claim, *arguments)

            with monkeypatch.context() as context:
                context.setattr(Claim, name, killed)
                with pytest.raises(SystemExit):
                    receipt(alice, phone)

        return cut_off

    @pytest.mark.parametrize(
        ("name", "point", "result", "sent"),
        [("step", "begin", "sms_not_sent", 0), ("call", "send", "sent", 1), ("complete", "", "sent", 1)],
    )
    def test_is_finished_after_the_lease(self, cut_off, phone, sandbox, name, point, result, sent):
        cut_off(name, point)
        assert (findings(), statuses()) == ([], [SENDING])
        end_leases()
        turn_back(timedelta(seconds=31))
        assert [findings(), findings()] == [[result], []]
        assert (len(sandbox.messages(phone)), unfinished()) == (sent, 0)

    def test_behind_a_rejection_is_rejected(self, cut_off, phone, sandbox):
        sandbox.rule("decline", call="message", phone=phone)
        cut_off("call", "send")
        end_leases()
        turn_back(timedelta(seconds=31))
        assert (findings(), statuses(), open_windows()) == (["sms_rejected"], [FAILED], 0)

    def test_before_the_claim_is_found_too(self, alice, phone, sandbox, monkeypatch):
        with monkeypatch.context() as context:
            context.setattr("notifications.sending.deliver.run", lambda **asked: exit())
            with pytest.raises(SystemExit):
                receipt(alice, phone)
        assert (findings(), unfinished()) == ([], 0)
        turn_back(timedelta(seconds=31))
        assert (findings(), statuses(), open_windows()) == (["sms_not_sent"], [FAILED], 0)
        assert receipt(alice, phone).status_code == 200
        assert len(sandbox.messages(phone)) == 1


class TestCommand:
    def test_prints_what_became_of_each(self, alice, phone, sandbox):
        sandbox.rule("silent_after", call="message", phone=phone)
        receipt(alice, phone)
        out = StringIO()
        call_command("reconcile_messages", stdout=out)
        first, last = out.getvalue().splitlines()
        assert (first.endswith(": sent"), last, phone in out.getvalue()) == (True, "1 looked at", False)

    def test_goes_on_after_one_that_cannot_be_finished(self, alice, phone, sandbox, monkeypatch):
        sandbox.rule("silent_after", call="message", phone=phone)
        receipt(alice, phone)
        with monkeypatch.context() as context:
            context.setattr(provider("sms"), "find", lambda **asked: 1 / 0)
            assert findings() == ["failed"]
        assert findings() == ["sent"]

    def test_is_a_task_as_well(self, alice, phone, sandbox):
        sandbox.rule("silent_after", call="message", phone=phone)
        receipt(alice, phone)
        assert [reconcile_messages(), reconcile_messages()] == [1, 0]
        assert statuses() == [SENT]
