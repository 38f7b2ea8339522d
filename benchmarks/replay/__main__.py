"""What a replay costs, as a ratio to the first request without idempotency: ``python -m benchmarks.replay``.

Exits with 1 when a target is missed.
"""

import argparse
import json
import os
import subprocess
import sys

from rich.console import Console
from rich.table import Table

from benchmarks import servers
from benchmarks.overhead.__main__ import Ratio, fresh
from tests.servers.redis import Redis

NAMES = {"plain": "Django view", "rest": "REST framework, token"}
TARGETS = {
    ("plain", "replay, Redis"): 0.20,
    ("plain", "replay, database, looks"): 0.25,
    ("rest", "replay, Redis"): 0.40,
    ("rest", "replay, database, looks"): 0.45,
}


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks.replay", description=__doc__)
    options.add_argument("--rounds", type=int, default=1000, help="requests of each kind (1000)")
    rounds = options.parse_args().rounds
    console = Console()
    for kind in (servers.PostgreSQL, Redis):
        console.print(servers.provide(kind))
    results = measure(rounds=rounds)
    console.print(table(results, rounds=rounds))
    console.print(f"load over the last minute: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    return any(results[view][kind][1] > target for (view, kind), target in TARGETS.items())


def measure(*, rounds: int) -> dict[str, dict[str, Ratio]]:
    with fresh("postgresql") as database:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.replay.measure", f"--rounds={rounds}"],
            env=os.environ | {"DATABASE_URL": database.url},
            stdout=subprocess.PIPE,
            check=True,
        )
    return json.loads(done.stdout)


def table(results: dict[str, dict[str, Ratio]], *, rounds: int) -> Table:
    table = Table(title=f"Ratio to the same view without idempotency ({rounds} rounds)")
    for name in ("view", "what", "median", "middle half", "target"):
        table.add_column(name, justify="left" if name in ("view", "what") else "right")
    for view, kinds in results.items():
        for kind, (low, median, high) in kinds.items():
            target = TARGETS.get((view, kind))
            mark = "" if target is None else f"≤ {target:.2f} {'✔' if median <= target else '✘'}"
            table.add_row(NAMES[view], kind, f"{median:.2f}", f"{low:.2f} to {high:.2f}", mark)
    return table


if __name__ == "__main__":
    sys.exit(main())
