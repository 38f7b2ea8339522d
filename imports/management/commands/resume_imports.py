"""``manage.py resume_imports``"""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from imports import services, storing


class Command(BaseCommand):
    """What the task ``imports.go_on`` does, for where Celery's beat does not run."""

    help = "Sends workers to imports whose own have died, and removes files that nobody needs."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take how often."""
        parser.add_argument("--interval", type=float, help="run again every so many seconds, until stopped")

    def handle(self, *, interval: float | None, **options: Any) -> None:
        """Print how many there were."""
        self._run()
        while interval is not None:
            time.sleep(interval)
            self._run()

    def _run(self) -> None:
        now = timezone.now()
        sent, swept = services.go_on_with_all(now=now), storing.sweep(now=now)
        self.stdout.write(f"{sent} imports go on, {swept} files removed")
