"""kill -9 while a text is sent, at each point: one text, and nothing is stuck once the lease has ended."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any, Final

import httpx
import pytest

from tests.conftest import VENDORS
from tests.notifications.gates import POINTS, SENT
from tests.processes import ROOT, Templates, environment
from tests.sandboxes import SandboxProcess
from tests.scenarios.conftest import ENVIRONMENT, ShopServer
from tests.scenarios.gates import Gate
from tests.shopping import http_client

SETTINGS: Final = "tests.notifications.served_settings"
LEASE: Final = 3.0
"""Seconds; longer than the provider may take."""


@dataclass(kw_only=True)
class TextingShop:
    server: ShopServer
    sandbox: SandboxProcess

    def post(self, phone: str, headers: Any = None) -> httpx.Response:
        body = {"phone": phone, "template": "order_paid", "kind": "notification", "biz_id": phone}
        with http_client(self.server.url) as client:
            return client.post("/api/sms", json=body, headers=headers)

    def insist(self, phone: str) -> httpx.Response:
        """Repeat until it is sent, as a client does that is told to come again."""
        end, last = monotonic() + LEASE + 20, None
        while monotonic() < end:
            try:
                last = self.post(phone)
            except httpx.TransportError as error:
                last = error
            else:
                if last.status_code == 200:
                    return last
            sleep(0.1)
        raise AssertionError(f"not sent: {last}")

    def reconcile(self, *, at_once: int) -> list[str]:
        """Run ``manage.py reconcile_messages``, several at once; return what they found."""
        env = environment(database=self.server.database, settings=SETTINGS) | dict(self.server.env)
        command = [sys.executable, "manage.py", "reconcile_messages"]
        processes = [
            subprocess.Popen(
                command, cwd=ROOT, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            for _ in range(at_once)
        ]
        outputs = [process.communicate(timeout=100)[0] for process in processes]
        assert [process.returncode for process in processes] == [0] * at_once, outputs
        return [line.partition(": ")[2] for output in outputs for line in output.splitlines() if ": " in line]

    def status(self, phone: str) -> str:
        where = f"biz_id = '{phone}' ORDER BY id DESC LIMIT 1"
        return str(self.server.scalar(f"SELECT status FROM notifications_message WHERE {where}"))

    def unfinished(self) -> int:
        return int(self.server.scalar("SELECT count(*) FROM idempotency_record WHERE state <> 'COMPLETED'"))


@pytest.fixture
def gate() -> Iterator[Gate]:
    with Gate() as gate:
        yield gate


@pytest.fixture(scope="module", params=[pytest.param(v, marks=getattr(pytest.mark, v)) for v in VENDORS])
def texts(
    request: pytest.FixtureRequest,
    templates: Templates,
    tmp_path_factory: pytest.TempPathFactory,
    sandbox_process: SandboxProcess,
) -> Iterator[TextingShop]:
    fresh = templates.fresh(vendor=request.param, settings="config.settings")
    server = ShopServer(
        database=fresh,
        app="config.wsgi",
        settings=SETTINGS,
        workers=2,
        threads=8,
        env={
            **ENVIRONMENT,
            "SANDBOX_URL": sandbox_process.url,
            "NOTIFICATIONS_LEASE": str(LEASE),
            "NOTIFICATIONS_READ_TIMEOUT": "1",
            "NOTIFICATIONS_CONNECT_TIMEOUT": "1",
            "NOTIFICATIONS_WAIT": "0",
        },
        log=tmp_path_factory.mktemp("texts") / f"{fresh.name}.log",
    )
    try:
        server.start()
        yield TextingShop(server=server, sandbox=sandbox_process)
    finally:
        server.kill()
        fresh.drop()


class TestKilledWorker:
    def kill(self, texts: TextingShop, gate: Gate, phone: str, point: str) -> None:
        with ThreadPoolExecutor() as pool:
            lost = pool.submit(texts.post, phone, dict(gate.at(point)))
            gate.wait().kill()
            assert isinstance(lost.exception(), httpx.TransportError)
        assert len(texts.sandbox.messages(phone)) == (point in SENT)

    @pytest.mark.parametrize("point", POINTS)
    def test_is_followed_by_a_repeat_that_makes_it_one_text(
        self, texts: TextingShop, gate: Gate, phone: str, point: str
    ) -> None:
        """MSG-04, MSG-06"""
        self.kill(texts, gate, phone, point)
        repeat = texts.insist(phone)
        assert repeat.json()["data"]["isDuplicate"] is (point in SENT)
        assert (len(texts.sandbox.messages(phone)), texts.status(phone)) == (1, "SENT")
        assert texts.unfinished() == 0

    @pytest.mark.parametrize("point", ["sms_before_claim", "sms_before_send", "sms_after_send"])
    def test_is_followed_by_reconcilers_that_send_nothing_and_free_what_was_not_sent(
        self, texts: TextingShop, gate: Gate, phone: str, point: str
    ) -> None:
        self.kill(texts, gate, phone, point)
        sleep(LEASE + 0.5)
        texts.reconcile(at_once=2)
        sent = point in SENT
        assert (len(texts.sandbox.messages(phone)), texts.status(phone)) == (
            sent,
            "SENT" if sent else "FAILED",
        )
        assert (texts.reconcile(at_once=1), texts.unfinished()) == ([], 0)
        assert texts.insist(phone).json()["data"]["isDuplicate"] is sent
        assert len(texts.sandbox.messages(phone)) == 1
