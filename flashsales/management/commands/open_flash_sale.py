"""``manage.py open_flash_sale SKU --units N``"""

from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from flashsales.exceptions import SalesOverlap
from flashsales.services import open_sale
from orders.models import Article


class Command(BaseCommand):
    """A sale begins at once unless ``--starts`` says when."""

    help = "Opens a flash sale: so many units of one article, one for each user."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take what is sold, and when."""
        parser.add_argument("sku")
        parser.add_argument("--units", type=int, required=True)
        parser.add_argument(
            "--starts", type=_instant, help="such as 2026-11-30T20:00:00+08:00; by default now"
        )
        parser.add_argument("--hours", type=float, default=24, help="how long it runs (24)")

    def handle(self, *, sku: str, units: int, starts: datetime | None, hours: float, **options: Any) -> None:
        """:raises CommandError: when there is nothing to sell, or another sale is on."""
        now = timezone.now()
        starts_at = starts or now
        if units < 1 or hours <= 0:
            raise CommandError("A sale has at least one unit, and lasts longer than no time.")
        ends_at = starts_at + timedelta(hours=hours)
        try:
            sale = open_sale(sku=sku, units=units, starts_at=starts_at, ends_at=ends_at, now=now)
        except Article.DoesNotExist as error:
            raise CommandError(f"There is no article {sku}.") from error
        except SalesOverlap as error:
            raise CommandError(f"{sku} has another sale at that time.") from error
        self.stdout.write(f"{sale}: from {sale.starts_at.isoformat()} to {sale.ends_at.isoformat()}")


def _instant(text: str) -> datetime:
    moment = parse_datetime(text)
    if moment is None:
        raise ValueError(text)
    return moment if timezone.is_aware(moment) else timezone.make_aware(moment)
