"""A large file from the upload to its last line: web server, outbox, broker and worker, each a process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.imports.files import numbered
from tests.messages.conftest import fresh_redis
from tests.processes import WebServer
from tests.shopping import http_client
from tests.workers import Worker

SETTINGS = "tests.messages.shop_settings"
LINES = 2_000

pytestmark = [pytest.mark.postgresql, pytest.mark.timeout(300)]


class ImportWorker(Worker):
    """A worker that finds the uploaded files."""

    def __init__(self, *, more: dict[str, str], **members: Any) -> None:
        super().__init__(**members)
        self.more = more

    def environment(self) -> dict[str, str]:
        return {**super().environment(), **self.more}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {
        "BROKER_URL": fresh_redis(),
        "TEST_QUEUE": f"tests-{uuid4()}",
        "IMPORTS_DIR": str(tmp_path / "imports"),
        "IMPORTS_AT_ONCE": "10",
        "IMPORTS_CHUNK": "50",
        "IMPORTS_LEASE": "1",
        "THROTTLE_RATE": "",
    }


@pytest.fixture
def shop(serve: Callable[..., WebServer], environment: dict[str, str]) -> WebServer:
    server = serve(settings=SETTINGS, env=environment)
    connection = server.connect()
    connection.cursor().execute("UPDATE stock_stockitem SET on_hand = 1000000")
    connection.close()
    return server


@pytest.fixture
def client(shop: WebServer) -> Iterator[httpx.Client]:
    with http_client(shop.url) as client:
        yield client


@contextmanager
def worker(shop: WebServer, environment: dict[str, str], log: Path) -> Iterator[Worker]:
    broker = environment["BROKER_URL"]
    worker = ImportWorker(
        database=shop.database,
        broker=broker,
        door=broker,
        settings=SETTINGS,
        log=log,
        queue=environment["TEST_QUEUE"],
        more=environment,
    )
    worker.start()
    try:
        yield worker
    finally:
        worker.kill()


def send(client: httpx.Client) -> tuple[int, dict[str, Any]]:
    files = {"file": ("orders.csv", numbered(LINES))}
    answer = client.post("/api/imports", data={"mode": "batch"}, files=files)
    return answer.status_code, answer.raise_for_status().json()["data"]


def watch(client: httpx.Client, data: dict[str, Any], until: Callable[[dict[str, Any]], bool]) -> list[int]:
    """Poll until it is so; return the percentages that were seen."""
    seen, end = [], monotonic() + 120
    while True:
        found = client.get(f"/api/imports/{data['importId']}").raise_for_status().json()["data"]
        seen.append(found["progress"]["percent"])
        if until(found):
            return seen
        assert monotonic() < end, found
        sleep(0.05)


def assert_each_once(shop: WebServer) -> None:
    assert shop.scalar("SELECT COUNT(*) FROM orders_order") == LINES
    assert shop.scalar("SELECT COUNT(DISTINCT client_order_no) FROM orders_order") == LINES
    assert shop.scalar("SELECT created FROM imports_import") == LINES
    assert shop.scalar("SELECT on_hand FROM stock_stockitem WHERE sku = 'TEA-100'") == 1_000_000 - LINES


def test_is_imported_while_its_uploader_watches(shop, client, environment, tmp_path):
    status, data = send(client)
    assert (status, data["status"], data["isDuplicate"]) == (202, "queued", False)
    assert send(client) == (202, {**data, "isDuplicate": True})

    with worker(shop, environment, tmp_path / "worker.log"):
        seen = watch(client, data, until=lambda found: found["status"] == "done")

    assert seen == sorted(seen)
    assert seen[-1] == 100
    assert_each_once(shop)
    assert send(client)[0] == 200


def test_goes_on_with_another_worker_when_the_first_is_killed(shop, client, environment, tmp_path):
    """IMP-13"""
    _status, data = send(client)
    with worker(shop, environment, tmp_path / "first.log"):
        watch(client, data, until=lambda found: found["progress"]["handled"] > 0)

    left = shop.scalar("SELECT created FROM imports_import")
    assert 0 < left < LINES
    with worker(shop, environment, tmp_path / "second.log"):
        while shop.scalar("SELECT status FROM imports_import") != "done":
            assert send(client)[0] in (200, 202)
            watch(client, data, until=lambda _found: True)

    assert_each_once(shop)
