"""``manage.py reconcile_flash_sales``"""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from flashsales import queueing
from flashsales.reconciling import reconcile


class Command(BaseCommand):
    """What a crash, a lost message or an emptied Redis left behind is put right here, also during a sale."""

    help = "Loads the gates of flash sales from the database, and announces tickets again that wait too long."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take how often."""
        group = parser.add_mutually_exclusive_group()
        group.add_argument("--once", action="store_true", help="run once and end, as it does by default")
        group.add_argument("--interval", type=float, help="run again every so many seconds, until stopped")

    def handle(self, *, interval: float | None, **options: Any) -> None:
        """Print each sale, and how many tickets were announced again."""
        self._run()
        while interval is not None:
            time.sleep(interval)
            self._run()

    def _run(self) -> None:
        announced = queueing.announce_late(now=timezone.now())
        for found in reconcile(now=timezone.now()):
            sold = f"{found.sold} of {found.units} sold"
            self.stdout.write(f"{found.sku}: {sold}; left at the gate {found.before}, now {found.after}")
        self.stdout.write(f"{announced} announced again")
