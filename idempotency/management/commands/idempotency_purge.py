from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from idempotency import purging


class Command(BaseCommand):
    help = (
        "Delete idempotency records whose retention has ended. "
        "Safe at any time: it waits for nobody and nobody waits for it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--batch-size", type=int, default=purging.BATCH, help="Records a transaction (%(default)s)."
        )
        parser.add_argument("--limit", type=int, help="Delete at most this many records.")
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
            self.stdout.write(f"{_records(purging.expired(using=database).count())} to delete.")
            return
        try:
            batches = purging.batches(using=database, batch_size=batch_size, limit=limit)
        except ValueError as error:
            raise CommandError(str(error)) from error
        total = 0
        for deleted in batches:
            total += deleted
            self._show_progress(total)
        self.stdout.write(self.style.SUCCESS(f"{_records(total)} deleted."))

    def _show_progress(self, total: int) -> None:
        if self.stdout.isatty():
            self.stdout.write(f"{total:,} …\r", ending="")
            self.stdout.flush()


def _records(count: int) -> str:
    return f"{count:,} expired {'record' if count == 1 else 'records'}"
