"""Tasks for real workers. A ``gate`` is a port where the test waits: see ``tests.scenarios.gates``."""

import os
import socket
from datetime import timedelta
from typing import Any

from celery import shared_task

from idempotency.celery import IdempotentTask
from idempotency.leased import Claim
from idempotency.signals import executed

from .effects import do
from .models import Effect

PATIENCE = 30.0
"""Seconds until a gate that nobody opens is an error."""

after_commit: list[int] = []
"""The gate of the task that runs now, once its work is committed."""


def hold(gate: int | None) -> None:
    """Stand at the gate until the test opens it, or kills us."""
    if gate is None:
        return
    with socket.create_connection(("127.0.0.1", gate), timeout=PATIENCE) as connection:
        connection.sendall(b"%d\n" % os.getpid())
        connection.recv(1)


@executed.connect
def hold_after_commit(**kwargs: Any) -> None:
    if after_commit:
        hold(after_commit.pop())


@shared_task(base=IdempotentTask, key="message_id", name="lab.work")
def work(
    *, message_id: str, gate: int | None = None, gate_after_commit: int | None = None, fails: bool = False
) -> dict[str, Any]:
    do(f"worked on {message_id}")
    hold(gate)
    if fails:
        raise ValueError("as the test wants it")
    if gate_after_commit:
        after_commit.append(gate_after_commit)
    return {"message_id": message_id, "pid": os.getpid()}


@shared_task(base=IdempotentTask, key=("kind", "order_no", "day"), name="lab.remind")
def remind(*, message_id: str, kind: str, order_no: str, day: str) -> None:
    do(f"reminded of {order_no}")


@shared_task(base=IdempotentTask, key="message_id", name="lab.stumble", bind=True, max_retries=2)
def stumble(self: IdempotentTask, *, message_id: str, gate: int | None = None) -> int:
    do(f"tried {message_id} after {self.request.retries}")
    if gate:
        hold(gate)
        raise ValueError("as the test wants it")
    if self.request.retries < self.max_retries:
        raise self.retry(countdown=0)
    return int(self.request.retries)


@shared_task(base=IdempotentTask, key="message_id", name="lab.limited", time_limit=2)
def limited(*, message_id: str, gate: int | None = None) -> None:
    do(f"worked on {message_id}")
    hold(gate)


@shared_task(base=IdempotentTask, key="message_id", name="lab.text", time_limit=2, lease=timedelta(seconds=3))
def text(*, message_id: str, gate: int | None = None, claim: Claim) -> str:
    """Have a text sent by a provider that honours its key; the answer gets lost at the gate."""

    def send(key: str) -> str:
        Effect.objects.get_or_create(name=f"sent {message_id} with {key}")
        do(f"asked for {message_id}")
        hold(gate)
        return key

    return claim.call("send", send)
