"""Many who press the button at once, on real servers and each database."""

from collections import Counter
from uuid import uuid4

import pytest

from tests.shopping import at_once, http_client

CLIENTS = 100

ENVIRONMENT = {"THROTTLE_RATE": "", "NOTIFICATIONS_WAIT": "20"}


@pytest.fixture
def served(serve, vendor, sandbox):
    return serve(database=vendor, threads=32, env={**ENVIRONMENT, "SANDBOX_URL": sandbox.url})


def press(served, body, *, clients=CLIENTS):
    """All at once; the answers."""

    def post(index):
        with http_client(served.url) as client:
            return client.post("/api/sms", json=body)

    return at_once(clients, post)


def counted(answers):
    return Counter((answer.status_code, answer.json()["data"]["isDuplicate"]) for answer in answers)


def end_windows(served):
    connection = served.connect()
    connection.cursor().execute("UPDATE notifications_window SET ends_at = opened_at")
    connection.close()


class TestAtOnce:
    def test_is_one_text_and_after_the_window_another(self, served, sandbox, phone):
        """SMS-01"""
        body = {"phone": phone, "template": "LOGIN", "kind": "verification"}
        for sent in (1, 2):
            sandbox.rule("slow", call="message", phone=phone, seconds=0.3)
            answers = press(served, body)
            assert counted(answers) == {(200, False): 1, (200, True): CLIENTS - 1}
            assert len({answer.json()["data"]["sentAt"] for answer in answers}) == 1
            assert len(sandbox.messages(phone)) == sent
            end_windows(served)
        assert served.scalar("SELECT count(*) FROM notifications_message WHERE status = 'SENT'") == 2
        assert served.scalar("SELECT count(*) FROM notifications_message") == 2

    def test_of_two_processes_is_one_text(self, served, sandbox):
        """SMS-01"""
        phone = "+8613800000001"
        known = len(sandbox.messages(phone))
        sandbox.rule("slow", call="message", phone=phone, seconds=0.3)
        body = {"phone": "13800000001", "template": "order_paid", "biz_id": f"SO-2024-{uuid4().hex}"}
        answers = press(served, body, clients=2)
        assert counted(answers) == {(200, False): 1, (200, True): 1}
        assert len(sandbox.messages(phone)) - known == 1

    def test_share_one_refusal(self, served, sandbox, phone):
        """Those who waited for the attempt that was rejected do not each try it again."""
        sandbox.rule("decline", call="message", phone=phone, seconds=0.5)
        answers = press(served, {"phone": phone, "template": "LOGIN", "kind": "verification"}, clients=20)
        statuses = Counter(answer.status_code for answer in answers)
        sent = len(sandbox.messages(phone))
        assert statuses.keys() <= {200, 422}
        assert (statuses[422] >= 1, sent) == (True, min(statuses[200], 1))

    def test_different_ones_do_not_wait_for_each_other(self, served, sandbox, phone):
        def post(index):
            with http_client(served.url) as client:
                body = {"phone": phone, "template": "order_paid", "kind": "notification"}
                return client.post("/api/sms", json={**body, "biz_id": f"{phone}-{index}"})

        assert counted(at_once(20, post)) == {(200, False): 20}
        assert len(sandbox.messages(phone)) == 20


class TestImpatient:
    @pytest.mark.postgresql
    def test_is_told_that_the_first_is_at_it(self, serve, sandbox, phone):
        env = {"SANDBOX_URL": sandbox.url, "NOTIFICATIONS_WAIT": "0"}
        served = serve(env=env)
        sandbox.rule("slow", call="message", phone=phone, seconds=3)
        answers = press(served, {"phone": phone, "template": "LOGIN", "kind": "verification"}, clients=4)
        assert Counter(answer.status_code for answer in answers) == {200: 1, 409: 3}
        refused = next(answer for answer in answers if answer.status_code == 409)
        assert (refused.json()["code"], bool(refused.headers["Retry-After"])) == (
            "operation_in_progress",
            True,
        )
        with http_client(served.url) as client:
            repeat = client.post(
                "/api/sms", json={"phone": phone, "template": "LOGIN", "kind": "verification"}
            )
        assert (repeat.status_code, repeat.json()["data"]["isDuplicate"]) == (200, True)
        assert len(sandbox.messages(phone)) == 1
