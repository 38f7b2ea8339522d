"""Probe guarded APIs over real HTTP, on PostgreSQL and Redis: ``python -m benchmarks.peers [PEER …]``.

Without a name ours is probed, without and with ATOMIC_REQUESTS; exits with 1 when anything of it is wrong.
"""

import argparse
import os
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import servers
from tests.servers.redis import Redis

from .probes import PROBES, Finding
from .server import Server

PEERS = sorted(path.stem for path in Path(__file__).with_name("adapters").glob("[!_]*.py"))


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    options.add_argument("peers", nargs="*", metavar="PEER", help=f"of {', '.join(PEERS)}")
    options.add_argument("--only", default="".join(PROBES), help="letters of the probes (abcdefghi)")
    options.add_argument("--atomic-requests", choices=["off", "on"], help="both, where it is not given")
    chosen = options.parse_args()
    peers = chosen.peers or ["ours"]
    if unknown := set(peers) - set(PEERS):
        options.error(f"unknown: {', '.join(unknown)}")
    modes = [chosen.atomic_requests] if chosen.atomic_requests else ["off", "on"]
    print(servers.provide(servers.PostgreSQL))
    redis = private_redis()
    ours_is_wrong = False
    for peer in peers:
        for mode in modes:
            with Server(peer=peer, atomic_requests=mode == "on") as server:
                findings = [(name, found) for name in chosen.only for found in PROBES[name](server, redis)]
            Console().print(table(f"{server.adapter.NAME}, ATOMIC_REQUESTS {mode}", findings))
            ours_is_wrong |= peer == "ours" and any(found.wrong for _, found in findings)
    return ours_is_wrong


def private_redis() -> Redis:
    """Start a Redis of our own, since a probe stops it and makes it lose its memory."""
    redis = Redis()
    redis.start()
    redis.wait()
    os.environ[Redis.variable] = redis.url
    return redis


def table(title: str, findings: list[tuple[str, Finding]]) -> Table:
    table = Table(title=title)
    for heading in ("", "probe", "seen", "wrong"):
        table.add_column(heading)
    for name, found in findings:
        table.add_row(name, found.did, found.saw, f"✘ {found.wrong}" if found.wrong else "")
    return table


if __name__ == "__main__":
    sys.exit(main())
