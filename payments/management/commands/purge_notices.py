"""``manage.py purge_notices``"""

from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from payments.purging import purge_contents

MOST_DAYS: Final = 36_500


class Command(BaseCommand):
    """The decrypted content of callbacks names buyers: it is kept as long as it helps, and no longer."""

    help = "Empties the content of settled notices; their numbers, amounts and fate stay."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take how long a content is kept."""
        parser.add_argument(
            "--older-than",
            type=float,
            metavar="DAYS",
            default=settings.PAYMENTS_NOTICE_RETENTION / timedelta(days=1),
            help="days since it was settled (%(default)s, from PAYMENTS_NOTICE_RETENTION)",
        )

    def handle(self, *, older_than: float, **options: Any) -> None:
        """Print how many contents were emptied.

        :raises CommandError: when the days are below zero or more than a century.
        """
        if not 0 <= older_than <= MOST_DAYS:
            raise CommandError(f"--older-than takes a number of days from 0 to {MOST_DAYS}.")
        before = timezone.now() - timedelta(days=older_than)
        emptied = sum(purge_contents(before=before))
        self.stdout.write(f"{emptied} emptied")
