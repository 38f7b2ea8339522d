"""``manage.py demo_worker``: relay, broker and worker in one process."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest

from demo import worker
from idempotency.exceptions import BrokerUnavailable
from idempotency.relaying import Envelope
from tests.databases import Database
from tests.processes import ROOT, Templates, environment, manage
from tests.sandboxes import SandboxProcess
from tests.servers.private import spawn, wait_until

SETTINGS = "config.settings"


@pytest.fixture
def shop(templates: Templates) -> Iterator[Database]:
    database = templates.fresh(vendor="sqlite", settings=SETTINGS)
    manage("demo_data", database=database, settings=SETTINGS)
    yield database
    database.drop()


@contextmanager
def working(database: Database, sandbox: SandboxProcess, log: Path) -> Iterator[Callable[[], bool]]:
    env = {**environment(database=database, settings=SETTINGS), "SANDBOX_URL": sandbox.url}
    command = [sys.executable, "manage.py", "demo_worker"]
    with log.open("ab") as file:
        process = spawn(*command, end=signal.SIGKILL, cwd=ROOT, stdout=file, env=env)
    try:
        yield lambda: process.poll() is None
    finally:
        process.terminate()
        assert process.wait(30) == 0, log.read_text()


def tell_paid(database: Database, name: str, order_no: str) -> None:
    """As if this user had paid an order."""
    statement = (
        "from django.contrib.auth import get_user_model; from django.db import transaction;"
        "from idempotency.outbox import publish;"
        f"user = get_user_model().objects.get(username={name!r}).pk; order_no = {order_no!r};"
        "facts = {'order_no': order_no, 'user_id': user, 'amount_minor': 3980, 'currency': 'CNY'};"
        "transaction.atomic()(publish)('orders.paid', facts, key=order_no)"
    )
    manage("shell", "--no-imports", "-c", statement, database=database, settings=SETTINGS)


def count(database: Database, statement: str) -> int:
    connection = database.connect()
    try:
        cursor = connection.cursor()
        cursor.execute(f"SELECT count(*) FROM {statement}")
        return cursor.fetchone()[0]
    finally:
        connection.close()


class TestDemoWorker:
    def test_lets_other_messages_pass_one_that_is_tried_again(
        self, shop: Database, sandbox: SandboxProcess, tmp_path: Path
    ) -> None:
        sandbox.rule("busy", call="message", phone="+8613912340001", times=0)
        tell_paid(shop, "alice", "ORD-1")
        with working(shop, sandbox, tmp_path / "log") as alive:
            wait_until(lambda: count_is(shop, "rewards_coupon WHERE order_no = 'ORD-1'", 1), alive=alive)
            tell_paid(shop, "bob", "ORD-2")
            wait_until(lambda: count_is(shop, "idempotency_outbox WHERE state = 'SENT'", 1), alive=alive)

            assert count(shop, "rewards_coupon WHERE order_no = 'ORD-2'") == 1
            assert count(shop, "idempotency_outbox WHERE state = 'PENDING'") == 1
            sandbox.clear()
            wait_until(lambda: count_is(shop, "idempotency_outbox WHERE state = 'SENT'", 2), alive=alive)
        assert count(shop, "rewards_coupon") == 2
        texts = sandbox.send("GET", "/messages", params={"phone": "+8613912340001"})
        assert [text["params"]["biz_id"] for text in texts].count("ORD-1") == 1


def count_is(database: Database, statement: str, expected: int) -> None:
    assert count(database, statement) == expected


class TestSend:
    def test_is_for_the_process_that_works(self) -> None:
        envelope = Envelope(id=UUID(int=1), topic="t", payload={}, key="", routes=("nobody",))
        with pytest.raises(BrokerUnavailable, match="demo_worker"):
            worker.send(envelope)
