"""Measure on ``DATABASE_URL``, which has to be empty, and ``REDIS_URL``; prints the ratios as JSON.

As ``benchmarks.overhead.measure``: each round sends every kind of request once, compared within itself.
"""

import argparse
import gc
import json
import os
import random
from functools import partial

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.replay.settings")

from django.conf import settings

from benchmarks.overhead.measure import Content, Ratio, fresh, prepare, quartiles, send

VIEWS = ("plain", "rest")
KINDS = {
    # what it is: path, cache, whether it is a repeat
    "control": ("", None, False),
    "nothing": ("/nothing", None, False),
    "first, no cache": ("/guarded", None, False),
    "first, Redis": ("/guarded", "redis", False),
    "first, looks": ("/looks", None, False),
    "replay, Redis": ("/guarded", "redis", True),
    "replay, memory": ("/guarded", "default", True),
    "replay, database": ("/guarded", None, True),
    "replay, database, looks": ("/looks", None, True),
}


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, required=True)
    rounds = options.parse_args().rounds
    prepare()
    print(json.dumps({view: compare(view, rounds=rounds) for view in VIEWS}))


def compare(view: str, *, rounds: int) -> dict[str, Ratio]:
    """Return how long each kind of request takes, as a ratio to the view's without idempotency."""
    samples: dict[str, list[float]] = {kind: [] for kind in KINDS}
    earlier = fresh()
    for kind in KINDS:
        if "replay" in kind:
            prime(view, kind, earlier)
    for number in range(-rounds // 5, rounds):
        taken, plain = one_round(view, earlier)
        if number >= 0:  # the rounds before are for warming up
            for kind, seconds in taken.items():
                samples[kind].append(seconds / plain)
    return {kind: quartiles(ratios) for kind, ratios in samples.items()}


def prime(view: str, kind: str, content: Content) -> None:
    """Let the answer be where the repeats will find it."""
    path, cache, _ = KINDS[kind]
    settings.IDEMPOTENCY_CACHE = cache
    for _ in range(2):
        try:
            send(f"{view}{path}", *content)
        except AssertionError:  # it is a replay already
            send(f"{view}{path}", *content, replayed=True)


def one_round(view: str, earlier: Content) -> tuple[dict[str, float], float]:
    """Send each kind of request, and the plain one; return their seconds."""
    kinds = {kind: partial(timed, view, kind, earlier) for kind in KINDS}
    kinds["plain"] = partial(timed, view, "control", earlier)
    gc.collect(0)
    gc.disable()
    try:
        taken = {kind: kinds[kind]() for kind in random.sample(list(kinds), len(kinds))}
    finally:
        gc.enable()
    return {kind: taken[kind] for kind in KINDS}, taken["plain"]


def timed(view: str, kind: str, earlier: Content) -> float:
    path, settings.IDEMPOTENCY_CACHE, replayed = KINDS[kind]
    return send(f"{view}{path}", *(earlier if replayed else fresh()), replayed=replayed)


if __name__ == "__main__":
    main()
