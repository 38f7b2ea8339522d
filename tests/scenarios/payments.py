"""A shop of several processes and the sandbox provider, which tell each other as in production."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

from sandbox.secrets import environment as shop_secrets
from sandbox.secrets import write
from tests.processes import ROOT, Templates, environment
from tests.sandboxes import SandboxProcess
from tests.scenarios.clients import LOST, Answer, Client, Order
from tests.scenarios.conftest import ENVIRONMENT, ShopServer
from tests.scenarios.effects import stock_up
from tests.servers.private import free_port

SETTINGS: Final = "tests.scenarios.payment_settings"
LEASE: Final = 3.0
"""Seconds; longer than the provider may take."""

READ_TIMEOUT: Final = 1.0


@dataclass(kw_only=True)
class PayingShop:
    """Both, and a buyer."""

    server: ShopServer
    sandbox: SandboxProcess
    alice: Client

    def order(self) -> str:
        """A fresh order; its number."""
        answer = self.alice.order(Order())
        assert answer.status == 201, answer
        return str(answer.data["orderId"])

    def pay(self, order_no: str, method: str = "alipay", headers: dict[str, str] | None = None) -> Answer:
        return self.post(f"/api/orders/{order_no}/pay", {"method": method}, headers)

    def refund(self, order_no: str, refund_no: str, amount: str) -> Answer:
        return self.post(f"/api/orders/{order_no}/refunds", {"refund_no": refund_no, "amount": amount})

    def cancel(self, order_no: str) -> Answer:
        return self.post(f"/api/orders/{order_no}/cancel", {})

    def post(self, path: str, content: dict[str, Any], headers: dict[str, str] | None = None) -> Answer:
        sent = {"Content-Type": "application/json", **(headers or {})}
        return self.alice.send("POST", path, body=json.dumps(content).encode(), headers=sent)

    def insist(self, order_no: str, *, within: float) -> Answer:
        """Repeat until it is paid, as a client does that is told to come again."""
        end, last = monotonic() + within, None
        while monotonic() < end:
            try:
                last = self.pay(order_no)
            except LOST as error:
                last = error
            else:
                if last.status == 200:
                    return last
            sleep(0.1)
        raise AssertionError(f"no success within {within} s: {last}")

    def reconciling(self) -> subprocess.Popen[str]:
        """Start ``manage.py reconcile_payments``."""
        env = environment(database=self.server.database, settings=SETTINGS) | dict(self.server.env)
        command = [sys.executable, "manage.py", "reconcile_payments", "--once"]
        return subprocess.Popen(
            command, cwd=ROOT, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def reconcile(self, *, at_once: int = 1) -> list[str]:
        """Run it, several at once; return what they found."""
        processes = [self.reconciling() for _ in range(at_once)]
        outputs = [process.communicate(timeout=100)[0] for process in processes]
        assert [process.returncode for process in processes] == [0] * at_once, outputs
        return [line for output in outputs for line in output.splitlines() if ": " in line]

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        connection = self.server.connect()
        try:
            cursor = connection.cursor()
            cursor.execute(statement)
            return list(cursor.fetchall())
        finally:
            connection.close()

    def unfinished(self) -> int:
        return int(self.server.scalar("SELECT count(*) FROM idempotency_record WHERE state <> 'COMPLETED'"))

    def statuses(self) -> dict[str, str]:
        return dict(self.rows("SELECT order_no, status FROM orders_order"))

    def payments(self) -> Counter[tuple[str, str]]:
        """How many payments of each status each order has."""
        return Counter(
            self.rows(
                "SELECT o.order_no, p.status FROM payments_payment p JOIN orders_order o ON o.id = p.order_id"
            )
        )

    def payments_of(self, order_no: str) -> dict[str, int]:
        return {status: count for (number, status), count in self.payments().items() if number == order_no}

    def charges(self) -> Counter[str]:
        """How often the provider charged each order: its own count."""
        return Counter(charge["order_no"] for charge in self.sandbox.charges())


@contextmanager
def paying_shop(
    vendor: str, templates: Templates, files: Path, *, notices: bool = True, workers: int = 3
) -> Iterator[PayingShop]:
    """Start both."""
    fresh = templates.fresh(vendor=vendor, settings="config.settings")
    secrets, port = write(files / "secrets.json"), free_port()
    notify = f"http://127.0.0.1:{port}/api/payments/callbacks" if notices else ""
    with SandboxProcess(notify=notify, secrets=files / "secrets.json") as sandbox:
        server = ShopServer(
            database=fresh,
            app="config.wsgi",
            settings=SETTINGS,
            workers=workers,
            threads=16,
            env={
                **ENVIRONMENT,
                **shop_secrets(secrets),
                "SANDBOX_URL": sandbox.url,
                "PAYMENTS_LEASE": str(LEASE),
                "PAYMENTS_READ_TIMEOUT": str(READ_TIMEOUT),
            },
            log=files / f"{fresh.name}.log",
            port=port,
        )
        try:
            server.start()
            stock_up(server)
            yield PayingShop(server=server, sandbox=sandbox, alice=Client(url=server.url))
            server.stop()
        finally:
            if server.process.poll() is None:
                server.kill()
            fresh.drop()
