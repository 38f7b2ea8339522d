"""``manage.py demo_data``"""

import os
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from demo.data import create_demo_data


class Command(BaseCommand):
    """Users with well-known tokens have no place where real customers are."""

    help = "Makes the demo's users, tokens, articles and stock where they are missing."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the stock."""
        parser.add_argument(
            "--stock",
            type=whole_number,
            default=os.environ.get("DEMO_STOCK") or None,
            help="pieces on hand of each article; by default DEMO_STOCK, else 100 of each new one",
        )

    def handle(self, **options: Any) -> None:
        """Make the data.

        :raises CommandError: unless DEBUG is on.
        """
        if not settings.DEBUG:
            raise CommandError(
                "The demo's tokens are known to everybody: demo_data runs only where DEBUG is on."
            )
        create_demo_data(stock=options["stock"])
        if options["verbosity"]:
            self.stdout.write(self.style.SUCCESS("Demo data is there."))


def whole_number(text: str) -> int:
    """:raises ValueError: when the text is no number from 0 on."""
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number
