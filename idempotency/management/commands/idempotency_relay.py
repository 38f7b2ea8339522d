import logging
import random
import signal
import socket
import threading
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError, connections

from idempotency import dialects, relaying
from idempotency.exceptions import OperationInProgress

LARGEST_BATCH: Final = 1000

LONGEST_WAIT: Final = timedelta(seconds=30)
"""Between two looks at a broker or database that is away."""

logger = logging.getLogger("idempotency")


class Command(BaseCommand):
    help = (
        "Send the messages of the outbox, until SIGTERM or SIGINT. Run as many as you like: each message is "
        "sent by one of them. It survives a database and a broker that go away."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="End when nothing is due.")
        parser.add_argument("--status", action="store_true", help="Only tell what is left to send.")
        parser.add_argument(
            "--interval", type=float, default=1.0, help="Seconds between two looks (%(default)s)."
        )
        parser.add_argument(
            "--batch-size", type=int, default=relaying.BATCH, help="Messages at a time (%(default)s)."
        )
        parser.add_argument(
            "--max-age",
            type=float,
            default=300.0,
            help="With --status: seconds that a message may be due before this is an error (%(default)s).",
        )
        parser.add_argument(
            "--database", choices=list(connections), help="By default the one that holds the records."
        )

    def handle(self, *args: Any, status: bool, once: bool, **options: Any) -> None:
        _check(options["interval"], options["batch_size"])
        alias = options["database"] or relaying.database()
        if status:
            self._tell_status(alias, timedelta(seconds=options["max_age"]))
        elif once:
            self._relay_all(alias, options["batch_size"])
        else:
            relaying.sender()  # a mistake in the settings ends it now
            with Loop(alias, options["batch_size"], timedelta(seconds=options["interval"])) as loop:
                loop.run()

    def _tell_status(self, alias: str, max_age: timedelta) -> None:
        status = relaying.status(using=alias)
        age = status.oldest_due
        since = "none is due" if age is None else f"the oldest due for {age.total_seconds():.0f} s"
        self.stdout.write(f"{status.pending:,} pending, {status.due:,} due, {status.dead:,} dead; {since}.")
        if status.dead:
            raise CommandError("There are dead letters: requeue or drop them in the admin.")
        if age and age > max_age:
            raise CommandError("Messages wait too long: does a relay run, and does the broker answer?")

    def _relay_all(self, alias: str, batch_size: int) -> None:
        sent = 0
        while (relayed := relaying.relay(using=alias, batch_size=batch_size)).claimed:
            sent += relayed.sent
            if not relayed.is_broker_available:
                raise CommandError(f"The broker cannot be reached; {sent:,} sent before.")
        waiting = relaying.status(using=alias).due
        self.stdout.write(self.style.SUCCESS(f"{sent:,} sent.") + _waiting(waiting))


def _waiting(count: int) -> str:
    """Say why messages that are due were left."""
    if not count:
        return ""
    return f" {count:,} wait: another relay has them, or the broker was away a moment ago."


class Loop:
    """Relays batch after batch, waits where there is nothing to do, and ends when it is told to."""

    def __init__(self, alias: str, batch_size: int, interval: timedelta) -> None:
        self._alias = alias
        self._batch_size = batch_size
        self._interval = interval
        self._is_stopped = False
        self._away: str | None = None
        self._tries = 0
        self._ear, self._bell = socket.socketpair()

    def __enter__(self) -> "Loop":
        if threading.current_thread() is threading.main_thread():
            self._handlers = {number: signal.signal(number, self._hear) for number in SIGNALS}
        return self

    def __exit__(self, *args: object) -> None:
        for number, handler in getattr(self, "_handlers", {}).items():
            signal.signal(number, handler)
        self._ear.close()
        self._bell.close()

    def run(self) -> None:
        """Relay until :meth:`stop`; the batch in hand is finished."""
        while not self._is_stopped:
            if wait := self._relay():
                self._wait(wait)

    def stop(self) -> None:
        """End soon; from another thread or a signal handler too, which must take no lock."""
        self._is_stopped = True
        self._bell.send(b".")

    def _hear(self, *args: object) -> None:
        self.stop()

    def _relay(self) -> timedelta:
        """Relay one batch; return how long to wait before the next."""
        connection = connections[self._alias]
        try:
            relayed = relaying.relay(using=self._alias, batch_size=self._batch_size)
        except OperationInProgress:
            return self._interval
        except (OperationalError, InterfaceError) as error:
            connection.close()
            if not dialects.is_unavailable(error):
                raise
            return self._interval if dialects.is_conflict(error) else self._note_away("database")
        connection.close_if_unusable_or_obsolete()
        if not relayed.is_broker_available:
            return self._note_away("broker")
        if relayed.claimed or self._away == "database":
            self._note_back()
        return timedelta(0) if relayed.claimed else self._interval

    def _note_away(self, what: str) -> timedelta:
        if self._away != what:
            logger.error("the outbox cannot reach its %s; its messages wait", what)
            self._away, self._tries = what, 0
        self._tries += 1
        longest: timedelta = min(self._interval * 2 ** min(self._tries, 10), LONGEST_WAIT)
        return longest * random.uniform(0.5, 1)  # noqa: S311

    def _note_back(self) -> None:
        if self._away:
            logger.warning("the outbox reaches its %s again", self._away)
        self._away = None

    def _wait(self, span: timedelta) -> None:
        self._ear.settimeout(span.total_seconds())
        try:
            self._ear.recv(1)
        except TimeoutError:
            return


SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def _check(interval: float, batch_size: int) -> None:
    if interval <= 0:
        raise CommandError("--interval is longer than zero seconds.")
    if not 1 <= batch_size <= LARGEST_BATCH:
        raise CommandError(f"--batch-size goes from 1 to {LARGEST_BATCH}.")
