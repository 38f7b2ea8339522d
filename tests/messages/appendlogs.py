"""What a Redis that writes everything down has lost: handed to a worker that was killed before it noted it.

Celery takes a message off the list and notes it among the unacknowledged ones in two steps. Between them only
the worker has it.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import IO


def lost(directory: Path, *, queue: str) -> set[str]:
    """Return the ids of the tasks of which a delivery was taken off the queue's lists and never noted."""
    lists: dict[str, list[bytes]] = defaultdict(list)
    taken: dict[str, str] = {}
    for command, *words in _commands(directory):
        match command:
            case "LPUSH" | "RPUSH" if words[0].decode().startswith(queue):
                items = lists[words[0].decode()]
                items.insert(0 if command == "LPUSH" else len(items), words[1])
            case "RPOP" if lists[words[0].decode()]:
                message = json.loads(lists[words[0].decode()].pop())
                taken[message["properties"]["delivery_tag"]] = message["headers"]["id"]
            case "HSET" if words[0] == b"unacked":
                taken.pop(words[1].decode(), None)
    return set(taken.values())


def _commands(directory: Path) -> Iterator[tuple[str, *tuple[bytes, ...]]]:
    for path in sorted(directory.glob("appendonlydir/*.incr.aof")):
        with path.open("rb") as log:
            while head := log.readline():
                if head.startswith(b"*"):
                    name, *words = (_word(log) for _ in range(int(head[1:])))
                    yield name.decode().upper(), *words


def _word(log: IO[bytes]) -> bytes:
    length = int(log.readline()[1:])
    word = log.read(length)
    log.read(2)
    return word
