"""``manage.py reconcile_messages``"""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from notifications.reconciling import reconcile


class Command(BaseCommand):
    """What a crash or a silent provider left behind is finished here."""

    help = "Finishes messages that were cut off, by asking the provider; sends nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take how often."""
        group = parser.add_mutually_exclusive_group()
        group.add_argument("--once", action="store_true", help="run once and end, as it does by default")
        group.add_argument("--interval", type=float, help="run again every so many seconds, until stopped")

    def handle(self, *, interval: float | None, **options: Any) -> None:
        """Print each message and what became of it."""
        self._run()
        while interval is not None:
            time.sleep(interval)
            self._run()

    def _run(self) -> None:
        number = 0
        for number, finding in enumerate(reconcile(), start=1):  # noqa: B007
            self.stdout.write(f"{finding.number}: {finding.result}")
        self.stdout.write(f"{number} looked at")
