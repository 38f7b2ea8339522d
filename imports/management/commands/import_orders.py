"""``manage.py import_orders FILE --user NAME``"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from rich.console import Console
from rich.progress import Progress

from idempotency.exceptions import RetryLater
from imports.models import COUNTS, Import, Mode
from imports.reading.limits import CHUNK
from imports.reading.refusals import FileRefused
from imports.running import run_import
from imports.services import receive


class Command(BaseCommand):
    """As an upload of the same file by the same user: whichever comes first is the import."""

    help = (
        "Imports a file of orders, once for each user, mode and content; goes on with one that was cut off."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the file, and what it is for."""
        parser.add_argument("file", type=Path)
        parser.add_argument("--user", required=True, help="name of the user whose orders they are")
        parser.add_argument("--mode", choices=Mode.values, default=Mode.BATCH.value)
        parser.add_argument("--period", default="", help="of an incremental file, such as 2026-11")

    def handle(self, *, file: Path, user: str, mode: str, period: str, **options: Any) -> None:
        """Import, and print what became of the lines.

        :raises CommandError: when the file is refused, has failed, or somebody else imports it now.
        """
        if period and mode != Mode.INCREMENTAL:
            raise CommandError("Only an incremental import has a period.")
        try:
            self._import(file, self._user(user), Mode(mode), period)
        except FileRefused as refusal:
            raise CommandError(f"{refusal.code}: {refusal.reason}") from refusal
        except RetryLater as error:
            raise CommandError("It is being imported right now: try again later.") from error
        except OSError as error:
            raise CommandError(str(error)) from error

    def _user(self, name: str) -> int:
        if user := get_user_model().objects.filter(username=name).first():
            return int(user.pk)
        raise CommandError(f"There is no user {name!r}.")

    def _import(self, file: Path, user_id: int, mode: Mode, period: str) -> None:
        receipt = receive(
            user_id=user_id,
            mode=mode,
            period=period,
            file_name=file.name,
            chunks=_chunks(file),
            now=timezone.now(),
            queue=False,
        )
        if not receipt.source.is_finished:
            self._run(receipt.source)
        source = Import.objects.get(pk=receipt.source.pk)
        self._tell(source, is_first=receipt.is_first)

    def _run(self, source: Import) -> None:
        with Progress(console=Console(file=self.stdout), transient=True) as progress:
            bar = progress.add_task(source.file_name, total=source.total)
            run_import(
                import_id=str(source.pk),
                watch=lambda present: progress.update(bar, completed=present.handled),
            )

    def _tell(self, source: Import, *, is_first: bool) -> None:
        counts = ", ".join(f"{name} {getattr(source, name)}" for name in COUNTS)
        again = "" if is_first else " (imported before)"
        text = f"{source.file_name}: {source.status}{again}: {counts}"
        if source.reason:
            raise CommandError(f"{text}. {source.reason}")
        self.stdout.write(text)
        for finding in source.findings.order_by("line"):
            self.stdout.write(f"line {finding.line}, {finding.column or '-'}: {finding.reason}")


def _chunks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as opened:
        while chunk := opened.read(CHUNK):
            yield chunk
