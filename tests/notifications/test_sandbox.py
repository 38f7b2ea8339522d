"""The sandbox as a provider of texts: once by key, and a closed key stays closed."""

import httpx
import pytest


@pytest.fixture
def ask(sandbox):
    def ask(method, path, **content):
        with httpx.Client(base_url=f"{sandbox.url}/sms", trust_env=False) as client:
            answer = client.request(method, path, json=content or None)
        return answer.status_code, answer.json()

    return ask


@pytest.fixture
def key(phone):
    return f"key{phone[1:]}"


@pytest.fixture
def send(ask, key, phone):
    return lambda **params: ask("POST", "/messages", key=key, phone=phone, template="T", **params)


class TestMessage:
    def test_is_once_by_its_key(self, ask, send, key, phone, sandbox):
        first, again = send(code="1"), send(code="2")
        assert first[0] == 200
        assert first == again == ask("GET", f"/messages/{key}")
        (sent,) = sandbox.messages(phone)
        assert (sent["template"], sent["params"], sent["key"]) == ("T", {"code": "1"}, key)
        assert sent in sandbox.send("GET", "/messages")

    def test_that_was_declined_stays_declined(self, ask, send, key, phone, sandbox):
        sandbox.rule("decline", call="message", phone=phone)
        assert [send()[0], send()[0], ask("GET", f"/messages/{key}")[0]] == [422, 422, 422]
        assert sandbox.messages(phone) == []

    def test_is_refused_once_its_key_is_closed(self, ask, send, key, phone, sandbox):
        assert ask("GET", f"/messages/{key}") == (200, {"message": None})
        assert ask("POST", f"/messages/{key}/close") == (200, {"message": None})
        assert (send()[0], sandbox.messages(phone)) == (422, [])

    def test_that_was_sent_is_told_by_close(self, ask, send, key):
        made = send()
        assert ask("POST", f"/messages/{key}/close") == made

    def test_of_a_busy_provider_is_not_sent_and_may_be_later(self, send, phone, sandbox):
        sandbox.rule("busy", call="message", phone=phone)
        assert (send()[0], sandbox.messages(phone)) == (503, [])
        assert (send()[0], len(sandbox.messages(phone))) == (200, 1)

    def test_needs_a_number_and_a_template(self, ask, key):
        assert ask("POST", "/messages", key=key)[0] == 400

    @pytest.mark.parametrize(("mode", "sent"), [("error_after", 1), ("error_before", 0)])
    def test_fails_as_the_rule_says(self, send, phone, sandbox, mode, sent):
        sandbox.rule(mode, call="message", phone=phone)
        assert (send()[0], len(sandbox.messages(phone))) == (500, sent)

    @pytest.mark.parametrize(("mode", "sent"), [("silent_after", 1), ("silent_before", 0)])
    def test_is_silent_as_the_rule_says(self, send, phone, sandbox, mode, sent):
        sandbox.rule(mode, call="message", phone=phone)
        with pytest.raises(httpx.RemoteProtocolError):
            send()
        assert len(sandbox.messages(phone)) == sent
