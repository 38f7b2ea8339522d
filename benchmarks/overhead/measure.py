"""Measure on the database of ``DATABASE_URL``, which has to be empty; prints the ratios as JSON.

Every round sends each kind of request once, in an order drawn anew, and is compared within itself: a
machine that is busy for a while slows both sides of a ratio. Requests are calls of the WSGI application in
this process.
"""

import argparse
import gc
import json
import os
import random
import statistics
import time
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache, partial
from io import BytesIO
from multiprocessing import get_context
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.overhead.settings")

import django

SKUS = 500
CLIENTS = 8
TOKEN = "0" * 40

Content = tuple[str, bytes]
"""Key and body of a request."""

Ratio = tuple[float, float, float]
"""Lower quartile, median, upper quartile."""


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, required=True)
    options.add_argument("--blocks", type=int, required=True)
    chosen = options.parse_args()
    prepare()
    results: dict[str, Any] = compare(rounds=chosen.rounds)
    if chosen.blocks:
        with ThreadPoolExecutor(CLIENTS) as threads:
            results["threads"] = throughput(threads, blocks=chosen.blocks)
        with ProcessPoolExecutor(CLIENTS, get_context("spawn"), django.setup) as processes:
            results["processes"] = throughput(processes, blocks=chosen.blocks)
    print(json.dumps(results))


def prepare() -> None:
    django.setup()
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from rest_framework.authtoken.models import Token

    from benchmarks.project.models import Stock

    call_command("migrate", verbosity=0)
    Token.objects.create(key=TOKEN, user=User.objects.create(username="alice"))
    Stock.objects.bulk_create(Stock(sku=f"sku-{number}", on_hand=10**9) for number in range(SKUS))


def compare(*, rounds: int) -> dict[str, Ratio]:
    """Return how long each kind of request takes, as a ratio to the plain view's in the same round."""
    samples: dict[str, list[float]] = {
        kind: []
        for kind in ("again", "first", "first_atomic", "first_looked", "replay", "replay_looked", "nothing")
    }
    earlier = fresh()
    send("guarded", *earlier)
    send("guarded-looks", *earlier)
    for number in range(-rounds // 5, rounds):
        new = fresh()
        taken = one_round(new, earlier)
        earlier = new
        if number >= 0:  # the rounds before are for warming up
            for kind, ratios in samples.items():
                ratios.append(taken[kind] / taken["plain"])
    return {kind: quartiles(ratios) for kind, ratios in samples.items()}


def one_round(new: Content, earlier: Content) -> dict[str, float]:
    """Send each kind of request; return their seconds."""
    kinds: dict[str, Callable[[], float]] = {
        "plain": partial(send, "plain", *new),
        "again": partial(send, "plain", *new),
        "first": partial(send, "guarded", *new),
        "first_atomic": partial(send, "guarded-atomic", *new),
        "first_looked": partial(send, "guarded-looks", *new),
        "nothing": partial(send, "nothing", *new),
        "replay": partial(send, "guarded", *earlier, replayed=True),
        "replay_looked": partial(send, "guarded-looks", *earlier, replayed=True),
    }
    gc.collect(0)
    gc.disable()
    try:
        return {kind: kinds[kind]() for kind in random.sample(list(kinds), len(kinds))}
    finally:
        gc.enable()


def throughput(executor: Executor, *, blocks: int) -> Ratio:
    """Return how many first requests are answered while the plain view answers one, to eight clients."""
    block_seconds(executor, "plain")
    block_seconds(executor, "guarded")
    ratios = []
    for _ in range(blocks):
        taken = {path: block_seconds(executor, path) for path in random.sample(["plain", "guarded"], 2)}
        ratios.append(taken["plain"] / taken["guarded"])
    return quartiles(ratios)


def block_seconds(executor: Executor, path: str) -> float:
    began = time.perf_counter()
    list(executor.map(send_block, [path] * CLIENTS))
    return time.perf_counter() - began


def send_block(path: str) -> None:
    for _ in range(25):
        send(path, *fresh())


def send(path: str, key: str, text: bytes, *, replayed: bool = False) -> float:
    """Send one request; return the seconds until its answer is read and closed.

    :raises AssertionError: when the answer is not the expected one.
    """
    heads: dict[str, str] = {}

    def start_response(status: str, headers: Iterable[tuple[str, str]]) -> None:
        heads.update(headers, status=status)

    environ = environment(path, key, text)
    handle = application()
    began = time.perf_counter()
    answer = handle(environ, start_response)
    content = b"".join(answer)
    answer.close()
    seconds = time.perf_counter() - began
    assert heads["status"] == "201 Created", content
    assert ("Idempotent-Replayed" in heads) is replayed, heads
    return seconds


def environment(path: str, key: str, text: bytes) -> dict[str, Any]:
    return {
        "REQUEST_METHOD": "POST",
        "SCRIPT_NAME": "",
        "PATH_INFO": f"/{path}",
        "QUERY_STRING": "",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(text)),
        "HTTP_AUTHORIZATION": f"Token {TOKEN}",
        "HTTP_IDEMPOTENCY_KEY": key,
        "wsgi.url_scheme": "http",
        "wsgi.input": BytesIO(text),
    }


@cache
def application() -> Callable[..., Any]:
    from django.core.handlers.wsgi import WSGIHandler

    return WSGIHandler()


def fresh() -> Content:
    """Return a new key and an order of one of the articles."""
    return uuid.uuid4().hex, json.dumps({"sku": f"sku-{random.randrange(SKUS)}", "amount": 1}).encode()


def quartiles(values: list[float]) -> Ratio:
    low, middle, high = statistics.quantiles(values, n=4)
    return low, middle, high


if __name__ == "__main__":
    main()
