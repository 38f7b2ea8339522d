"""``manage.py reconcile_payments``"""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from payments.reconciling import reconcile


class Command(BaseCommand):
    """What a crash, a silent provider or a late charge left behind is finished here."""

    help = "Finishes payments and refunds that were cut off, by asking the provider; gives late charges back."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take how often."""
        group = parser.add_mutually_exclusive_group()
        group.add_argument("--once", action="store_true", help="run once and end, as it does by default")
        group.add_argument("--interval", type=float, help="run again every so many seconds, until stopped")

    def handle(self, *, interval: float | None, **options: Any) -> None:
        """Print each piece of work and what became of it."""
        self._run()
        while interval is not None:
            time.sleep(interval)
            self._run()

    def _run(self) -> None:
        number = 0
        for number, finding in enumerate(reconcile(), start=1):  # noqa: B007
            self.stdout.write(f"{finding.operation} {finding.key}: {finding.result}")
        self.stdout.write(f"{number} looked at")
