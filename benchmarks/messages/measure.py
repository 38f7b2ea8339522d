"""The kinds of work that are compared, each in blocks, on the servers that the environment names."""

import gc
import random
import socket
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from uuid import uuid4

from django.db import transaction

from benchmarks.messages import tasks
from benchmarks.messages.celery import app
from idempotency import relaying
from idempotency.consuming import consume_once
from idempotency.outbox import publish

SKUS = 500
PATIENCE = 120.0
TOLD = "benchmarks.told"

Ratio = tuple[float, float, float]
"""Lower quartile, median, upper quartile."""

Block = Callable[[], float]
"""Does a block of work; returns its seconds."""

Track = Callable[[Sequence[int]], Iterable[int]]
"""Passes the numbers of the rounds on, and shows how far they are."""


def compare(kinds: dict[str, Block], *, to: str, rounds: int, track: Track) -> dict[str, Ratio]:
    """Return how long each kind takes, as a ratio to another's in the same round; the order is drawn anew."""
    ratios: dict[str, list[float]] = {kind: [] for kind in kinds if kind != to}
    for number in track(range(-max(1, rounds // 5), rounds)):
        taken = one_round(kinds)
        if number >= 0:  # the rounds before are for warming up
            for kind, values in ratios.items():
                values.append(taken[kind] / taken[to])
    return {kind: quartiles(values) for kind, values in ratios.items()}


def one_round(kinds: dict[str, Block]) -> dict[str, float]:
    gc.collect(0)
    gc.disable()
    try:
        return {kind: kinds[kind]() for kind in random.sample(list(kinds), len(kinds))}
    finally:
        gc.enable()


def tasks_of_a_worker(listener: socket.socket, *, size: int) -> dict[str, Block]:
    """Blocks of messages for the one worker of the queue."""
    earlier = [facts() for _ in range(size)]
    block(listener, "benchmarks.guarded", earlier)
    kinds = {"plain": "plain", "again": "plain", "guarded": "guarded"}
    blocks: dict[str, Block] = {
        kind: lambda name=name: block(listener, f"benchmarks.{name}", [facts() for _ in range(size)])
        for kind, name in kinds.items()
    }
    return {**blocks, "repeat": partial(block, listener, "benchmarks.guarded", earlier)}


def block(listener: socket.socket, name: str, messages: list[dict[str, str]]) -> float:
    """Let the messages queue behind a bell and in front of another; return the seconds between the two."""
    with app.producer_pool.acquire(block=True) as producer:
        ring = partial(app.send_task, "benchmarks.ring", kwargs={"port": port(listener)}, producer=producer)
        ring()
        first, _ = listener.accept()
        for message in messages:
            app.send_task(name, kwargs=message, producer=producer)
        ring()
    began = time.perf_counter()
    first.close()
    last, _ = listener.accept()
    seconds = time.perf_counter() - began
    last.close()
    return seconds


def calls(*, size: int) -> dict[str, Block]:
    """Blocks of function calls in this process."""
    numbers = [str(uuid4()) for _ in range(size)]
    for number in numbers:
        consume_once("benchmark", number, partial(tasks.take, sku=sku()))
    return {
        "plain": lambda: timed(plain_call, [""] * size),
        "again": lambda: timed(plain_call, [""] * size),
        "guarded": lambda: timed(guarded_call, [str(uuid4()) for _ in range(size)]),
        "repeat": lambda: timed(guarded_call, numbers),
    }


def plain_call(message_id: str) -> None:
    with transaction.atomic():
        tasks.take(sku=sku())


def guarded_call(message_id: str) -> None:
    consume_once("benchmark", message_id, partial(tasks.take, sku=sku()))


def timed(call: Callable[[str], None], arguments: list[str]) -> float:
    began = time.perf_counter()
    for argument in arguments:
        call(argument)
    return time.perf_counter() - began


def sends(*, size: int) -> dict[str, Block]:
    """Blocks of messages on their way to a broker without a worker."""
    return {"bare": partial(send_bare, size), "relayed": partial(relay_all, size)}


def send_bare(size: int) -> float:
    messages = [facts() for _ in range(size)]
    began = time.perf_counter()
    with app.producer_pool.acquire(block=True) as producer:
        for message in messages:
            app.send_task(
                "benchmarks.guarded", kwargs=message, task_id=message["message_id"], producer=producer
            )
    seconds = time.perf_counter() - began
    empty()
    return seconds


def relay_all(size: int) -> float:
    with transaction.atomic():
        for _ in range(size):
            publish(TOLD, {"sku": sku()})
    began = time.perf_counter()
    sent = 0
    while relayed := relaying.relay().sent:
        sent += relayed
    seconds = time.perf_counter() - began
    assert sent == size, sent
    empty()
    return seconds


def empty() -> None:
    with app.connection_for_write() as connection:
        connection.default_channel.queue_purge(app.conf.task_default_queue)


def facts() -> dict[str, str]:
    return {"message_id": str(uuid4()), "sku": sku()}


def sku() -> str:
    return f"sku-{random.randrange(SKUS)}"


def port(listener: socket.socket) -> int:
    return int(listener.getsockname()[1])


def quartiles(values: list[float]) -> Ratio:
    low, middle, high = statistics.quantiles(values, n=4)
    return low, middle, high
