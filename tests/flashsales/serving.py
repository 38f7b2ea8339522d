"""The shop as processes of their own: web workers, a Celery worker, relay and reconciler, and their Redis."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlsplit

import psutil

from flashsales import gate
from tests.databases import Database
from tests.lab.caches import Server
from tests.processes import ROOT, Templates, WebServer, environment
from tests.scenarios.clients import LOST
from tests.scenarios.conftest import SETTINGS, ShopServer
from tests.servers.private import spawn
from tests.workers import Worker

SKU = "TEA-100"
BROKER = 1
"""The broker's database in Redis; the gate is in 0, and alone in there can be emptied."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    status: int
    code: str

    @property
    def is_ticket(self) -> bool:
        return self.status in (200, 202)


@dataclass(kw_only=True)
class FlashWorker(Worker):
    """A worker that knows where the gate is."""

    more: dict[str, str]

    def environment(self) -> dict[str, str]:
        return {**super().environment(), **self.more}


@dataclass(kw_only=True)
class FlashShop:
    server: WebServer
    redis: Server
    env: dict[str, str]
    files: Path
    at_end: ExitStack

    @property
    def database(self) -> Database:
        return self.server.database

    def register(self, buyers: int) -> list[str]:
        """Make users and return their tokens."""
        for statement in (
            "INSERT INTO auth_user (username, password, first_name, last_name, email, is_superuser, is_staff,"
            " is_active, date_joined)"
            " SELECT 'buyer-' || n, '', '', '', '', false, false, true, now()"
            f" FROM generate_series(1, {buyers}) n",
            "INSERT INTO authtoken_token (key, created, user_id)"
            " SELECT username, now(), id FROM auth_user WHERE username LIKE 'buyer-%'",
        ):
            self.execute(statement)
        return [f"buyer-{number}" for number in range(1, buyers + 1)]

    def open(self, *, units: int, sku: str = SKU) -> None:
        self.execute(f"UPDATE stock_stockitem SET on_hand = {units} WHERE sku = '{sku}'")
        self.manage("open_flash_sale", sku, "--units", str(units))

    def manage(self, *arguments: str, **env: str) -> str:
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(
            command, cwd=ROOT, env={**self.environment, **env}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @property
    def environment(self) -> dict[str, str]:
        return {**environment(database=self.database, settings=SETTINGS), **self.env}

    @contextmanager
    def helper(self, *arguments: str) -> Iterator[None]:
        """Run a command of manage.py beside the test."""
        with (self.files / arguments[0]).open("ab") as log:
            command = [sys.executable, "manage.py", *arguments]
            process = spawn(*command, end=signal.SIGKILL, cwd=ROOT, stdout=log, env=self.environment)
        try:
            yield
            assert process.poll() is None, (self.files / arguments[0]).read_text()
        finally:
            process.kill()
            process.wait()

    def worker(self, number: int) -> Worker:
        """Return a worker that has begun to work."""
        worker = FlashWorker(
            database=self.database,
            broker=self.env["BROKER_URL"],
            door=self.env["BROKER_URL"],
            settings=SETTINGS,
            log=self.files / f"worker-{number}.log",
            processes=2,
            more=self.env,
        )
        worker.start()
        self.at_end.callback(end, worker)
        return worker

    def buy(self, token: str, key: str, headers: dict[str, str] | None = None, *, sku: str = SKU) -> Answer:
        """:raises OSError, HTTPException: ``LOST``, when there is no answer."""
        parts = urlsplit(self.server.url)
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        sent = {"Authorization": f"Token {token}", "Idempotency-Key": key, **(headers or {})}
        try:
            connection.request("POST", f"/api/flash-sales/{sku}/orders", b"", sent)
            response = connection.getresponse()
            return Answer(status=response.status, code=str(json.loads(response.read())["code"]))
        finally:
            connection.close()

    def insist(self, token: str, key: str, *, sku: str = SKU) -> Answer:
        """Repeat under the same key, as a client does that lost its connection or is told to come again."""
        until = monotonic() + 30
        while monotonic() < until:
            with suppress(*LOST):
                answer = self.buy(token, key, sku=sku)
                if answer.code not in ("operation_in_progress", "store_unavailable"):
                    return answer
        raise AssertionError("no answer")

    def left(self, sku: str = SKU) -> int | None:
        """What the gate would let in."""
        with self.redis.client as client:
            found = client.hget(gate._name(sku), "left")
        return None if found is None else int(found)

    def flush(self) -> None:
        """Empty the gate's database, and leave the broker's."""
        with self.redis.client as client:
            client.flushdb()

    def kill_web_worker(self) -> None:
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            os.kill(self.server.pids()[0], signal.SIGKILL)

    def execute(self, statement: str) -> None:
        connection = self.server.connect()
        try:
            connection.cursor().execute(statement)
        finally:
            connection.close()

    def sold(self, sku: str = SKU) -> int:
        return self.scalar(f"SELECT sold FROM flashsales_flashsale WHERE sku = '{sku}'")

    def tickets(self, status: str = "", *, sku: str = SKU) -> int:
        sales = f"SELECT id FROM flashsales_flashsale WHERE sku = '{sku}'"
        where = f"status LIKE '{status}%' AND sale_id IN ({sales})"
        return self.scalar(f"SELECT count(*) FROM flashsales_ticket WHERE {where}")

    def orders(self) -> int:
        return self.scalar("SELECT count(*) FROM orders_order")

    def scalar(self, statement: str) -> Any:
        return self.server.scalar(statement)


def end(worker: Worker) -> None:
    """Kill it, unless the test has."""
    if worker.process.poll() is None:
        worker.kill()


@contextmanager
def flash_shop(templates: Templates, files: Path, **env: str) -> Iterator[FlashShop]:
    """A shop of two web processes on PostgreSQL, with a Redis of its own for gate, cache and broker."""
    with ExitStack() as at_end:
        redis = Server().begin()
        at_end.callback(redis.stop)
        fresh = templates.fresh(vendor="postgresql", settings="config.settings")
        at_end.callback(fresh.drop)
        broker = redis.url.rpartition("/")[0] + f"/{BROKER}"
        ours = {
            "REDIS_URL": redis.url,
            "FLASH_GATE_URL": redis.url,
            "BROKER_URL": broker,
            "TEST_CACHE": "default",
            "THROTTLE_RATE": "",
            **env,
        }
        server = ShopServer(
            database=fresh,
            app="config.wsgi",
            settings=SETTINGS,
            workers=2,
            threads=8,
            env=ours,
            log=files / "shop.log",
        )
        server.start()
        at_end.callback(server.stop)
        yield FlashShop(server=server, redis=redis, env=ours, files=files, at_end=at_end)


def eventually(probe: Callable[[], Any], expected: Any, *, within: float = 60) -> None:
    until = monotonic() + within
    while (seen := probe()) != expected and monotonic() < until:
        sleep(0.1)
    assert seen == expected
