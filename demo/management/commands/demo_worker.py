"""``manage.py demo_worker``"""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from demo.worker import work


class Command(BaseCommand):
    """What ``celery worker``, ``celery beat`` and a broker do elsewhere."""

    help = "Relays the outbox and works on its messages in one process, without a broker, until stopped."

    def handle(self, **options: Any) -> None:
        """Work.

        :raises CommandError: where there is a broker, whose worker this is not.
        """
        if settings.HAS_BROKER:
            raise CommandError("BROKER_URL names a broker: run `celery -A config worker --beat`.")
        work()
