"""Completed outcomes in the cache, so that a repeat needs no database.

    get ──hit──► outcome                     keep, once the outcome is committed ──► entry
     └──miss, error, doubtful──► database    forget, when the record makes room for another

The database decides; an entry only repeats it. A missing one costs one look there, never an answer. No entry
outlives its record's retention: the cache ends it a second early, and a cache that hung and took it late is
overruled by the time that stands in it, as exactly as the clocks of the application's servers agree.
"""

import json
import time
from collections.abc import Callable
from datetime import timedelta
from functools import cache, partial
from hashlib import blake2b
from secrets import compare_digest
from typing import Final

from django.conf import settings
from django.db import connections, transaction

from . import caching
from .rows import Found
from .values import Operation, Outcome

LONGEST: Final = timedelta(hours=1)
"""An entry's life: a record that somebody deletes, or a backup that is restored, counts after so long."""

MARGIN: Final = timedelta(seconds=1)
"""More than a command is under way to a cache that answers."""

LARGEST: Final = 64 * 1024
"""Bytes of a body: larger ones stay in the database alone, lest a few of them drive out all the others."""

SEAL: Final = 16
FORMAT: Final = 1


def get(alias: str, operation: Operation) -> Found | None:
    """Return the outcome that was kept for this operation in this database, without asking it."""
    if not caching.is_on():
        return None
    name = _name(alias, operation)
    entry = caching.get(name)
    return None if entry is None else _unpack(name, entry)


def keep_on_commit(alias: str, operation: Operation, found: Found, *, instead: bool = False) -> None:
    """Keep an outcome once the transaction that wrote or read it is committed.

    ``instead`` says that it takes the place of an expired one, which must go even where this one cannot stay.
    """
    if not caching.is_on():
        return
    _on_commit(alias, partial(_keep, _name(alias, operation), found, instead=instead))


def forget_on_commit(alias: str, operation: Operation) -> None:
    """Let go of an expired outcome once its record is another's."""
    if caching.is_on():
        _on_commit(alias, partial(caching.delete, _name(alias, operation)))


def _on_commit(alias: str, fn: Callable[[], None]) -> None:
    connection = connections[alias]
    if connection.in_atomic_block or connection.get_autocommit():
        transaction.on_commit(fn, using=alias, robust=True)


def _keep(name: str, found: Found, *, instead: bool) -> None:
    span = _span(found)
    if span > timedelta(0) and len(found.outcome.body or b"") <= LARGEST:
        caching.put(name, _pack(name, found, span), span)
    elif instead:
        caching.delete(name)


def _span(found: Found) -> timedelta:
    if found.until is None:
        return LONGEST
    return min(timedelta(seconds=found.until - time.monotonic()) - MARGIN, LONGEST)


def _name(alias: str, operation: Operation) -> str:
    return f"idempotency:{FORMAT}:{_database(alias)}:{operation.id.hex}"


def _database(alias: str) -> str:
    """Name the database itself: one alias may stand for several, in tests say."""
    options = connections[alias].settings_dict
    return _digest(str(options["HOST"]), str(options["PORT"]), str(options["NAME"]))


@cache
def _digest(*texts: str) -> str:
    return blake2b("\0".join(texts).encode(), digest_size=8).hexdigest()


def _pack(name: str, found: Found, span: timedelta) -> bytes:
    outcome = found.outcome
    head = {
        "fingerprint": found.fingerprint.hex() if found.fingerprint else None,
        "status": outcome.status,
        "headers": outcome.headers,
        "has_body": outcome.body is not None,
        "until": time.time() + span.total_seconds(),
    }
    content = json.dumps(head).encode() + b"\n" + (outcome.body or b"")
    return _seal(name, content) + content


def _unpack(name: str, entry: bytes) -> Found | None:
    """Read an entry; one that we have not written, or that is torn, old or another's, is none."""
    seal, content = entry[:SEAL], entry[SEAL:]
    if not compare_digest(seal, _seal(name, content)):
        return None
    text, _, body = content.partition(b"\n")
    head = json.loads(text)
    if head["until"] <= time.time():
        return None
    return Found(
        bytes.fromhex(head["fingerprint"]) if head["fingerprint"] else None,
        Outcome(
            status=head["status"],
            headers=tuple((name, value) for name, value in head["headers"]),
            body=body if head["has_body"] else None,
        ),
    )


def _seal(name: str, content: bytes) -> bytes:
    """Sign an entry and its name: whoever can write to the cache cannot make an answer."""
    secret = _secret(settings.SECRET_KEY)
    return blake2b(name.encode() + b"\n" + content, key=secret, digest_size=SEAL).digest()


@cache
def _secret(key: str | bytes) -> bytes:
    text = key if isinstance(key, bytes) else key.encode()
    return blake2b(text, digest_size=32, person=b"idempotency").digest()
