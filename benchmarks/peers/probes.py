"""What is done to each guarded API. Each probe yields what it did, what it saw, and what is wrong with that.

One order for one key, no 5xx but the view's own, nobody gets another's answer, and a killed worker is
forgotten at once.
"""

import os
import signal
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from tests.servers.redis import Redis

from .server import Answer, Server

RECOVERY_LIMIT = 45.0
AT_ONCE = 3.0
MAY_BE_LOST = frozenset({"x-order-id", "set-cookie"})
MAY_DIFFER = frozenset({"date", "server", "connection", "content-length"})


@dataclass(frozen=True)
class Finding:
    """One row of the table; ``wrong`` is empty where all is well."""

    did: str
    saw: str
    wrong: str = ""


Probe = Callable[[Server, Redis], Iterator[Finding]]


def finding(did: str, saw: str, **wrong: bool) -> Finding:
    """Return a finding with the names of what is wrong, as in ``two_orders=orders > 1``."""
    return Finding(did, saw, ", ".join(name.replace("_", " ") for name, is_so in wrong.items() if is_so))


def new() -> tuple[str, bytes]:
    """Return the name of a probe and a fresh key."""
    return uuid.uuid4().hex, str(uuid.uuid4()).encode()


def concurrent(server: Server, redis: Redis) -> Iterator[Finding]:
    for path in ("/orders", "/orders", "/orders", "/slow"):
        probe, key = new()
        answers = burst(server, path, probe, [key] * 20)
        later = server.post(path, key, probe=probe)
        orders = server.orders(probe)
        yield finding(
            f"20 at once with one key, {path}",
            f"{statuses(answers)}, then {later.status}; {orders} orders",
            not_one_order=orders != 1,
            server_error=any_5xx(*answers, later),
            several_answers=len({answer.body for answer in answers if answer.status == 201}) != 1,
            no_replay=later.status != 201,
        )
    probe, _ = new()
    answers = burst(server, "/slow", probe, [new()[1] for _ in range(20)])
    orders = server.orders(probe)
    yield finding(
        "20 at once with 20 keys, /slow",
        f"{statuses(answers)}; {orders} orders",
        not_20_orders=orders != 20,
        server_error=any_5xx(*answers),
    )


def retry(server: Server, redis: Redis) -> Iterator[Finding]:
    probe, key = new()
    first, again = (server.post("/orders", key, probe=probe) for _ in range(2))
    kept = {name for name, value in again.headers.items() if first.headers.get(name) == value}
    lost = sorted(name for name in first.headers.keys() - kept - MAY_DIFFER if "idempoten" not in name)
    yield finding(
        "retry after success",
        f"{first.status} → {again.status}; lost: {', '.join(lost) or 'nothing'}",
        executed_again=len(server.pids(probe)) != 1,
        other_answer=(first.status, first.body) != (again.status, again.body),
        lost_headers=not MAY_BE_LOST.issuperset(lost),
        view_headers_missing_at_first=not (MAY_BE_LOST | {"location", "etag"}).issubset(first.headers),
    )


def other_content(server: Server, redis: Redis) -> Iterator[Finding]:
    probe, key = new()
    first = server.post("/orders", key, probe=probe)
    other = server.post("/orders", key, probe=probe, body=b'{"amount": 999}')
    yield finding(
        "same key, other body",
        f"{other.status}; {server.orders(probe)} orders",
        not_refused=other.status not in (409, 422),
        old_answer=other.body == first.body,
        not_one_order=server.orders(probe) != 1,
    )
    probe, key = new()
    first = server.post("/orders", key, probe=probe, body=b'{"amount": 5, "note": "x"}')
    again = server.post("/orders", key, probe=probe, body=b'{"note":"x","amount":5}')
    yield finding(
        "same key, same JSON in another spelling",
        f"{again.status}; {server.orders(probe)} orders",
        not_one_order=server.orders(probe) != 1,
        server_error=any_5xx(again),
    )


def other_user(server: Server, redis: Redis) -> Iterator[Finding]:
    for login in ("token", "session"):
        probe, key = new()
        mine = server.post("/orders", key, probe=probe, login=login, user="alice")
        theirs = server.post("/orders", key, probe=probe, login=login, user="bob")
        yield finding(
            f"same key, other user by {login}",
            f"{theirs.status}; {server.orders(probe)} orders",
            foreign_answer=theirs.body == mine.body,
            server_error=any_5xx(mine, theirs),
        )
    for before, login in (("token", "none"), ("token", "wrong"), ("session", "none")):
        probe, key = new()
        mine = server.post("/orders", key, probe=probe, login=before)
        stranger = server.post("/orders", key, probe=probe, login=login)
        yield finding(
            f"finished key of a {before}, credentials: {login}",
            f"{stranger.status}",
            foreign_answer=stranger.body == mine.body,
            let_in=stranger.status != 401,
        )
    probe, key = new()
    refused = server.post("/orders", key, probe=probe, login="none")
    owner = server.post("/orders", key, probe=probe)
    yield finding(
        "refused without credentials, then the owner",
        f"{refused.status} → {owner.status}; {server.orders(probe)} orders",
        key_burnt=owner.status != 201,
    )


def other_address(server: Server, redis: Redis) -> Iterator[Finding]:
    for one, two in (("/orders", "/other"), ("/orders?warehouse=1", "/orders?warehouse=2")):
        probe, key = new()
        first = server.post(one, key, probe=probe)
        other = server.post(two, key, probe=probe)
        yield finding(
            f"same key, {one} then {two}",
            f"{other.status}; {server.orders(probe)} orders",
            old_answer=other.body == first.body,
            server_error=any_5xx(first, other),
        )


def crash(server: Server, redis: Redis) -> Iterator[Finding]:
    for path in ("/pauses-after-commit", "/pauses-before-commit"):
        probe, key = new()
        with ThreadPoolExecutor() as pool:
            first = pool.submit(server.post, path, key, probe=probe)
            os.kill(wait_for_worker(server, probe), signal.SIGKILL)
            client_saw = first.result()
        killed = time.monotonic()
        again = server.post(path, key, probe=probe)
        seen = [again]
        while again.status != 201 and time.monotonic() - killed < RECOVERY_LIMIT:
            time.sleep(0.2)
            seen.append(again := server.post(path, key, probe=probe))
        seconds = time.monotonic() - killed
        orders = server.orders(probe)
        yield finding(
            f"kill -9, {path}",
            f"{statuses([client_saw])}, then {statuses(seen)} within {seconds:.1f} s; {orders} orders",
            stuck=again.status != 201,
            late=seconds > AT_ONCE,
            not_one_order=orders != 1,
            server_error=any_5xx(*seen),
        )


def failures(server: Server, redis: Redis) -> Iterator[Finding]:
    for path in ("/raises-once", "/invalid-once", "/answers-400-once", "/answers-500-once"):
        probe, key = new()
        first, second, third = answers = [server.post(path, key, probe=probe) for _ in range(3)]
        orders = server.orders(probe)
        yield finding(
            f"{path}, then two retries",
            f"{' → '.join(str(answer.status) for answer in answers)}; {orders} orders",
            server_error=any_5xx(second, third) or (first.status == 500 and "400" in path),
            stuck=third.status in (409, 423),
            more_than_one_order=orders > 1,
            answer_without_order=second.status == 201 and orders != 1,
        )


def redis_away(server: Server, redis: Redis) -> Iterator[Finding]:
    finished, finished_key = new()
    server.post("/orders", finished_key, probe=finished)
    running, running_key = new()
    with ThreadPoolExecutor() as pool:
        first = pool.submit(server.post, "/slow", running_key, probe=running)
        wait_for_worker(server, running)
        redis.stop()
        cut = first.result()
    yield from without_redis(server, finished, finished_key)
    redis.start()
    redis.wait()
    again = server.post("/slow", running_key, probe=running)
    yield finding(
        "Redis stops during a request, retry when it is back",
        f"{cut.status} → {again.status}; {server.orders(running)} orders",
        not_one_order=server.orders(running) != 1,
        server_error=any_5xx(cut, again),
    )
    again = server.post("/orders", finished_key, probe=finished)
    yield finding(
        "Redis has lost its memory: finished key",
        f"{again.status}; {server.orders(finished)} orders",
        not_one_order=server.orders(finished) != 1,
        no_replay=again.status != 201,
    )


def without_redis(server: Server, finished: str, finished_key: bytes) -> Iterator[Finding]:
    probe, key = new()
    answers = [server.post("/orders", key, probe=probe) for _ in range(2)]
    yield finding(
        "Redis is down: fresh key, twice",
        f"{statuses(answers)}; {server.orders(probe)} orders",
        not_one_order=server.orders(probe) != 1,
        server_error=any_5xx(*answers),
    )
    again = server.post("/orders", finished_key, probe=finished)
    yield finding(
        "Redis is down: finished key",
        f"{again.status}; {server.orders(finished)} orders",
        not_one_order=server.orders(finished) != 1,
        no_replay=again.status != 201,
    )
    probe, key = new()
    answers = burst(server, "/slow", probe, [key] * 8)
    yield finding(
        "Redis is down: 8 at once with one key",
        f"{statuses(answers)}; {server.orders(probe)} orders",
        not_one_order=server.orders(probe) != 1,
        server_error=any_5xx(*answers),
    )


def edges(server: Server, redis: Redis) -> Iterator[Finding]:
    for name, content in BIG_BODIES.items():
        yield big_body(server, name, *content)
    for path in ("/binary", "/latin1", "/stream", "/big", "/nothing"):
        yield odd_answer(server, path)
    for name, key in KEYS.items():
        probe, _ = new()
        answers = [server.post("/orders", key, probe=probe) for _ in range(2)]
        orders = server.orders(probe)
        yield finding(
            f"key: {name}",
            f"{' → '.join(str(answer.status) for answer in answers)}; {orders} orders",
            server_error=any_5xx(*answers),
            two_orders=orders > 1 and bool(key and key.strip()),
        )


FILLING = b"x" * 10_000_000
BIG_BODIES = {
    # REST framework refuses it by itself from 3.18 on
    "JSON": ("application/json", b'{"amount": 5, "filling": "%b"}' % FILLING),
    "file": (
        "multipart/form-data; boundary=b",
        b'--b\r\nContent-Disposition: form-data; name="amount"\r\n\r\n5\r\n'
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n%b\r\n--b--\r\n' % FILLING,
    ),
}
KEYS = {
    "no header": None,
    "empty": b"",
    "blank": b"   ",
    "10,000 characters": b"k" * 10_000,
    "control characters": b"ab\x01\x02cd",
    "a tab inside": b"ab\tcd",
    "UTF-8": "clé-日本".encode(),
    "Latin-1": b"cl\xe9",
    "quoted": b'"7f8d2f2e-2a0d-4b8e-9f0a-1c5f3a1b2c3d"',
    "a word": b"order-42",
}


def big_body(server: Server, name: str, content_type: str, body: bytes) -> Finding:
    probe, key = new()
    send = partial(server.post, "/orders", key, probe=probe, content_type=content_type)
    first, again, other = send(body=body), send(body=body), send(body=body.replace(b"xx", b"xy", 1))
    orders = server.orders(probe)
    return finding(
        f"10 MB of {name}, again, and other 10 MB",
        f"{first.status} → {again.status}, {other.status}; {orders} orders",
        refused=first.status != 201 and name != "JSON",
        other_answer=(first.status, first.body) != (again.status, again.body),
        old_answer=other.status == 201 and other.body == first.body,
        two_orders=orders > 1,
        server_error=any_5xx(first, again, other),
    )


def odd_answer(server: Server, path: str) -> Finding:
    probe, key = new()
    first, again = (server.post(path, key, probe=probe) for _ in range(2))
    omitted = "omitted" in again.headers.values()  # an answer too long to keep, and marked so
    orders = server.orders(probe)
    return finding(
        f"answer: {path}, then a retry",
        f"{first.status} → {again.status}, {len(first.body)} → {len(again.body)} bytes; {orders} orders",
        other_answer=first.status != again.status or (first.body != again.body and not omitted),
        not_one_order=orders != 1,
        server_error=any_5xx(first, again),
    )


PROBES: dict[str, Probe] = {
    "a": concurrent,
    "b": retry,
    "c": other_content,
    "d": other_user,
    "e": other_address,
    "f": crash,
    "g": failures,
    "h": redis_away,
    "i": edges,
}


def burst(server: Server, path: str, probe: str, keys: list[bytes]) -> list[Answer]:
    """Send all at the same moment."""
    gate = threading.Barrier(len(keys))

    def send(key: bytes) -> Answer:
        gate.wait()
        return server.post(path, key, probe=probe)

    with ThreadPoolExecutor(len(keys)) as pool:
        return list(pool.map(send, keys))


def wait_for_worker(server: Server, probe: str) -> int:
    """Return the process that executes the view, once it has begun."""
    end = time.monotonic() + 10
    while not (pids := server.pids(probe)):
        assert time.monotonic() < end, "the view never ran"
        time.sleep(0.01)
    time.sleep(0.2)  # into the pause
    return pids[0]


def statuses(answers: list[Answer]) -> str:
    counted = Counter(answer.status or "dropped" for answer in answers)
    return " ".join(f"{count}×{status}" for status, count in counted.most_common())


def any_5xx(*answers: Answer) -> bool:
    return any(answer.status >= 500 for answer in answers)
