"""Callbacks: verified, handled once, committed, acknowledged."""

import json
from datetime import timedelta
from threading import Event
from typing import Any

import pytest
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path

from idempotency import engine, http, webhooks
from idempotency.exceptions import StoreUnavailable
from idempotency.models import IdempotencyRecord
from idempotency.testing import Crash, crash_at
from idempotency.webhooks import Ack, InvalidSignature, MalformedEvent, Refuse, WebhookEvent, WebhookView
from tests.lab import effects
from tests.lab.races import Background, race

pytestmark = [
    pytest.mark.django_db(transaction=True, databases="__all__"),
    pytest.mark.urls(__name__),
]

PATIENCE = 30


class Gate:
    """Stops a handler where a test wants it."""

    def __init__(self) -> None:
        self.reached, self.opened = Event(), Event()

    def wait(self) -> None:
        self.reached.set()
        assert self.opened.wait(PATIENCE)


class LabCallback(WebhookView):
    """Believes whoever knows the word; does as the event says."""

    sender = "lab"
    gates: dict[str, Gate] = {}

    def get_event(self, request: HttpRequest) -> WebhookEvent:
        if request.headers.get("Signature") != "sesame":
            raise InvalidSignature("a false word")
        try:
            data = json.loads(request.body)
            return WebhookEvent(id=data["id"], data=data)
        except (ValueError, LookupError) as error:
            raise MalformedEvent("no event") from error

    def handle(self, event: WebhookEvent) -> Ack | Refuse | None:
        effects.do(event.id)
        if gate := self.gates.get(event.data.get("gate", "")):
            gate.wait()
        match event.data.get("do"):
            case "raise":
                raise RuntimeError("a defect")
            case "nothing":
                return None
            case int(status):
                return Refuse("unwanted", status)
        return Ack()


class OtherCallback(LabCallback):
    sender = "other"

    def acknowledge(self) -> HttpResponse:
        return HttpResponse(
            b"\xffok", content_type="application/x-ok", headers={"Set-Cookie": "a=b", "ETag": '"1"'}
        )

    def get_fingerprint(self, event: WebhookEvent) -> None:
        return None


urlpatterns = [path("lab", LabCallback.as_view()), path("other", OtherCallback.as_view())]


@pytest.fixture(autouse=True)
def records_in_each_database(database: str, settings: Any) -> None:
    settings.IDEMPOTENCY_DATABASE = database


@pytest.fixture
def gate() -> Any:
    LabCallback.gates["here"] = gate = Gate()
    yield gate
    gate.opened.set()
    del LabCallback.gates["here"]


def deliver(
    number: Any = "E1", *, to: str = "/lab", word: str = "sesame", client: Client | None = None, **more: Any
) -> Any:
    client = client or Client(enforce_csrf_checks=True)
    body = json.dumps({"id": number, **more})
    return client.post(to, body, content_type="application/json", headers={"Signature": word})


def told(answer: Any) -> tuple[int, bytes, str]:
    return answer.status_code, answer.content, answer.headers["Content-Type"]


class TestEvent:
    def test_is_handled_once(self) -> None:
        """WEB-01, WEB-13"""
        first, *repeats = [deliver() for _ in range(4)]

        assert [told(answer) for answer in (first, *repeats)] == [(200, b"", "text/plain")] * 4
        assert http.REPLAYED not in first.headers
        assert all(answer.headers[http.REPLAYED] == "true" for answer in repeats)
        assert (effects.done(), effects.records()) == (["E1"], 1)

    def test_is_handled_once_and_for_ever(self) -> None:
        deliver()
        record = IdempotencyRecord.objects.using(effects.database()).get()

        assert (record.operation, record.scope, record.key) == ("webhooks.lab", "", "E1")
        assert record.expires_at is None

    def test_of_another_sender_is_another_one(self) -> None:
        assert [deliver(to=to).status_code for to in ("/lab", "/other")] == [200, 200]
        assert (effects.done(), effects.records()) == (["E1", "E1"], 2)

    def test_is_handled_once_by_two_at_once(self) -> None:
        """WEB-02"""
        answers = race([deliver] * 8)

        assert {answer.status_code for answer in answers} <= {200, 409}
        assert any(answer.status_code == 200 for answer in answers)
        assert deliver().status_code == 200
        assert (effects.done(), effects.records()) == (["E1"], 1)

    @pytest.mark.parametrize(
        "database",
        [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("postgresql", "mariadb")],
    )
    def test_that_is_being_handled_comes_again(self, gate: Gate, database: str, settings: Any) -> None:
        """WEB-02"""
        settings.IDEMPOTENCY_DATABASE = database if database in settings.DATABASES else "default"
        first = Background(lambda: deliver(gate="here"))
        assert gate.reached.wait(PATIENCE)
        rival = deliver(gate="here")
        gate.opened.set()

        assert (rival.status_code, rival.content, rival.headers["Retry-After"]) == (
            409,
            b"operation_in_progress",
            "1",
        )
        assert first.result().status_code == 200
        assert deliver(gate="here").headers[http.REPLAYED] == "true"
        assert effects.done() == ["E1"]

    def test_with_other_content_is_logged_and_counted_and_acknowledged(self, caplog: Any, heard: Any) -> None:
        deliver()
        other = deliver(amount=1)

        assert (other.status_code, other.headers[http.REPLAYED]) == (200, "true")
        assert (effects.done(), effects.records()) == (["E1"], 1)
        assert "other content under a known number" in caplog.text
        assert [event[0] for event in heard] == ["executed", "refused", "replayed"]
        assert heard[1][2] == "idempotency_key_reused"

    def test_with_other_content_is_not_noticed_where_nothing_is_compared(self, heard: Any) -> None:
        answers = [deliver(to="/other", amount=amount) for amount in (1, 2)]

        assert [answer.status_code for answer in answers] == [200, 200]
        assert [event[0] for event in heard] == ["executed", "replayed"]


class TestAnswer:
    def test_of_nothing_is_an_acknowledgement(self) -> None:
        assert deliver(do="nothing").status_code == 200

    @pytest.mark.parametrize("status", [200, 400, 403, 500, 503])
    def test_that_refuses_is_kept_whatever_its_status(self, status: int) -> None:
        client = Client(raise_request_exception=False)
        answers = [deliver(do=status, client=client) for _ in range(3)]

        assert {told(answer) for answer in answers} == {(status, b"unwanted", "text/plain")}
        assert (effects.done(), effects.records()) == (["E1"], 1)

    def test_is_repeated_byte_for_byte(self) -> None:
        """WEB-13: without cookies."""
        first, again = (deliver(to="/other") for _ in range(2))

        assert told(first) == told(again) == (200, b"\xffok", "application/x-ok")
        assert (first.headers["ETag"], again.headers["ETag"]) == ('"1"', '"1"')
        assert "Set-Cookie" not in again.headers


class TestFailure:
    def test_rolls_everything_back(self) -> None:
        """WEB-06"""
        failed = deliver(do="raise", client=Client(raise_request_exception=False))

        assert failed.status_code == 500
        assert (effects.done(), effects.records()) == ([], 0)
        assert deliver().status_code == 200
        assert (effects.done(), effects.records()) == (["E1"], 1)

    @pytest.mark.parametrize(
        ("point", "done"), [("after_claim", 0), ("in_handler", 0), ("before_commit", 0), ("after_commit", 1)]
    )
    def test_by_a_crash_leaves_all_or_nothing(self, point: Any, done: int) -> None:
        with pytest.raises(Crash), crash_at(point):
            deliver()
        assert (len(effects.done()), effects.records()) == (done, done)

        answer = deliver()
        assert (answer.status_code, http.REPLAYED in answer.headers) == (200, bool(done))
        assert (effects.done(), effects.records()) == (["E1"], 1)

    def test_of_the_store_comes_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def run(*args: Any, **kwargs: Any) -> Any:
            raise StoreUnavailable(timedelta(seconds=7))

        monkeypatch.setattr(webhooks.engine, "run", run)
        answer = deliver()

        assert (answer.status_code, answer.content, answer.headers["Retry-After"]) == (
            503,
            b"store_unavailable",
            "7",
        )


class TestRequest:
    @pytest.mark.parametrize("word", ["", "sesam"])
    def test_that_is_forged_leaves_nothing_behind(self, word: str, heard: Any) -> None:
        """WEB-07, WEB-08"""
        forged = deliver(word=word)

        assert told(forged) == (401, b"invalid_signature", "text/plain")
        assert (effects.done(), effects.records()) == ([], 0)
        assert heard == [("refused", None, "invalid_signature")]
        assert deliver().status_code == 200
        assert effects.done() == ["E1"]

    @pytest.mark.parametrize("number", ["", " ", "x" * 256, "a\nb", "a\0b"])
    def test_without_a_usable_number_is_refused(self, number: str) -> None:
        assert deliver(number).status_code == 400
        assert (effects.done(), effects.records()) == ([], 0)

    def test_that_is_malformed_is_refused(self, heard: Any) -> None:
        answer = Client().post("/lab", b"{", content_type="application/json", headers={"Signature": "sesame"})

        assert told(answer) == (400, b"malformed_event", "text/plain")
        assert heard == [("refused", None, "malformed_event")]

    @pytest.mark.parametrize("method", ["get", "put", "patch", "delete", "options"])
    def test_of_another_method_is_refused(self, method: str) -> None:
        assert getattr(Client(), method)("/lab", headers={"Signature": "sesame"}).status_code == 405

    def test_has_a_transaction_of_its_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Under ATOMIC_REQUESTS too: a conflict can be run again, and the answer is sent after the commit."""
        monkeypatch.setitem(connections["default"].settings_dict, "ATOMIC_REQUESTS", value=True)
        inside: list[bool] = []
        run = engine.run

        def watched(*args: Any, **kwargs: Any) -> Any:
            inside.append(connections["default"].in_atomic_block)
            return run(*args, **kwargs)

        monkeypatch.setattr(webhooks.engine, "run", watched)
        assert deliver().status_code == 200
        assert inside == [False]
        assert (effects.done(), effects.records()) == (["E1"], 1)
