"""The shop whole: an order paid over HTTP, told by the outbox, worked on by a real worker."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.messages.conftest import fresh_redis
from tests.processes import ROOT, WebServer, manage
from tests.processes import environment as settings_of
from tests.sandboxes import SandboxProcess
from tests.servers.private import spawn
from tests.shopping import http_client, request_body
from tests.workers import Worker

SETTINGS = "tests.messages.shop_settings"
PHONE = "+8613912340001"

pytestmark = pytest.mark.postgresql


@pytest.fixture
def environment(sandbox: SandboxProcess) -> dict[str, str]:
    urls = {"BROKER_URL": fresh_redis(), "SANDBOX_URL": sandbox.url}
    return {**urls, "TEST_QUEUE": f"tests-{uuid4()}", "OUTBOX_LEASE": "4"}


@pytest.fixture
def shop(serve: Callable[..., WebServer], environment: dict[str, str]) -> WebServer:
    server = serve(settings=SETTINGS, env=environment)
    manage("demo_data", database=server.database, settings=SETTINGS)
    return server


@pytest.fixture
def worker(shop: WebServer, environment: dict[str, str], tmp_path: Path) -> Iterator[Worker]:
    broker = environment["BROKER_URL"]
    worker = ShopWorker(
        database=shop.database,
        broker=broker,
        door=broker,
        settings=SETTINGS,
        log=tmp_path / "worker.log",
        queue=environment["TEST_QUEUE"],
        more=environment,
    )
    worker.start()
    yield worker
    worker.kill()


class ShopWorker(Worker):
    """A worker that knows where the sandbox is."""

    def __init__(self, *, more: dict[str, str], **members: Any) -> None:
        super().__init__(**members)
        self.more = more

    def environment(self) -> dict[str, str]:
        return {**super().environment(), **self.more}


def pay(shop: WebServer) -> str:
    """Order and pay; return the order's number."""
    with http_client(shop.url) as alice:
        made = post(alice, "/api/orders", request_body(), {"Idempotency-Key": str(uuid4())})
        order_no = made["orderId"]
        assert post(alice, f"/api/orders/{order_no}/pay", {"method": "alipay"})["payStatus"] == "paid"
    return order_no


def post(client: httpx.Client, path: str, body: Any, headers: dict[str, str] | None = None) -> Any:
    return client.post(path, json=body, headers=headers or {}).raise_for_status().json()["data"]


def eventually(probe: Callable[[], Any], expected: Any) -> None:
    until = monotonic() + 30
    while (seen := probe()) != expected and monotonic() < until:
        sleep(0.05)
    assert seen == expected


@contextmanager
def relay(shop: WebServer, environment: dict[str, str]) -> Iterator[None]:
    """``manage.py idempotency_relay``, a process of its own."""
    env = {**settings_of(database=shop.database, settings=SETTINGS), **environment}
    command = [sys.executable, "manage.py", "idempotency_relay", "--interval", "0.2"]
    process = spawn(*command, end=signal.SIGKILL, cwd=ROOT, env=env)
    try:
        yield
    finally:
        process.terminate()
        assert process.wait(30) == 0


def effects(shop: WebServer, sandbox: SandboxProcess, order_no: str) -> dict[str, int]:
    where = f"WHERE order_no = '{order_no}'"
    texts = sandbox.send("GET", "/messages", params={"phone": PHONE})
    return {
        "coupons": shop.scalar(f"SELECT count(*) FROM rewards_coupon {where}"),
        "points": shop.scalar(f"SELECT coalesce(sum(points), 0) FROM rewards_pointsentry {where}"),
        "texts": sum(text["params"].get("biz_id") == order_no for text in texts),
        "mails": shop.scalar(
            "SELECT count(*) FROM notifications_message "
            f"WHERE biz_id = '{order_no}' AND channel = 'email' AND status = 'SENT'"
        ),
    }


ONCE = {"coupons": 1, "points": 39, "texts": 1, "mails": 1}


class TestPaidOrder:
    def test_is_told_once_however_often_the_message_comes(
        self, shop: WebServer, worker: Worker, sandbox: SandboxProcess
    ) -> None:
        order_no = pay(shop)
        eventually(lambda: effects(shop, sandbox, order_no), ONCE)
        assert shop.scalar("SELECT count(*) FROM idempotency_outbox WHERE state <> 'SENT'") == 0

        message = str(shop.scalar("SELECT message_id FROM idempotency_outbox"))
        user_id = shop.scalar("SELECT id FROM auth_user WHERE username = 'alice'")
        facts = {"order_no": order_no, "user_id": user_id, "amount_minor": 3980, "currency": "CNY"}
        routes = ["rewards.grant_coupon", "rewards.add_points"]
        routes += ["notifications.send_receipt_sms", "notifications.send_receipt_mail"]
        again = [worker.send(route, message_id=message, **facts) for route in routes]
        other = [worker.send(route, message_id=str(uuid4()), **facts) for route in routes]

        for task_id in again + other:
            worker.wait_for(lambda task_id=task_id: worker.lines(f"[{task_id}] succeeded") == 1)
        assert effects(shop, sandbox, order_no) == ONCE

    def test_is_told_later_when_no_broker_was_there(
        self, shop: WebServer, worker: Worker, sandbox: SandboxProcess, environment: dict[str, str]
    ) -> None:
        shop.env = {**environment, "BROKER_URL": "redis://127.0.0.1:1/0"}
        shop.restart()
        order_no = pay(shop)
        assert shop.scalar("SELECT count(*) FROM idempotency_outbox WHERE state = 'PENDING'") == 1
        assert effects(shop, sandbox, order_no) == {"coupons": 0, "points": 0, "texts": 0, "mails": 0}

        with relay(shop, environment):
            eventually(lambda: effects(shop, sandbox, order_no), ONCE)
        assert shop.scalar("SELECT count(*) FROM idempotency_outbox WHERE state <> 'SENT'") == 0
