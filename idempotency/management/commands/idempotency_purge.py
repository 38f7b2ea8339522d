from argparse import ArgumentParser
from collections.abc import Iterator
from functools import partial
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from idempotency import purging


class Command(BaseCommand):
    help = (
        "Delete idempotency records and outbox messages whose retention has ended. "
        "Safe at any time: it waits for nobody and nobody waits for it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--batch-size", type=int, default=purging.BATCH, help="Rows a transaction (%(default)s)."
        )
        parser.add_argument("--limit", type=int, help="Delete at most this many rows.")
        parser.add_argument("--dry-run", action="store_true", help="Only count what has expired.")
        parser.add_argument(
            "--database", choices=list(connections), help="By default the one that holds the records."
        )

    def handle(
        self,
        *args: Any,
        batch_size: int,
        limit: int | None,
        dry_run: bool,
        database: str | None,
        **options: Any,
    ) -> None:
        if dry_run:
            counts = purging.expired(using=database).count(), purging.ended(using=database).count()
            self.stdout.write(f"{_rows(*counts)} to delete.")
            return
        batches = partial(purging.batches, using=database, batch_size=batch_size)
        message_batches = partial(purging.message_batches, using=database, batch_size=batch_size)
        try:
            records = self._purge(batches(limit=limit))
            messages = self._purge(message_batches(limit=None if limit is None else limit - records))
        except ValueError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(self.style.SUCCESS(f"{_rows(records, messages)} deleted."))

    def _purge(self, batches: Iterator[int]) -> int:
        total = 0
        for deleted in batches:
            total += deleted
            self._show_progress(total)
        return total

    def _show_progress(self, total: int) -> None:
        if self.stdout.isatty():
            self.stdout.write(f"{total:,} …\r", ending="")
            self.stdout.flush()


def _rows(records: int, messages: int) -> str:
    return f"{_counted(records, 'expired record')} and {_counted(messages, 'sent message')}"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
