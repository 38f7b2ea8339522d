"""Imports at work in the background, as Celery tasks."""

from typing import Any

from celery import shared_task
from django.utils import timezone

from idempotency.celery import IdempotentTask

from . import services, storing
from .running import run_import


@shared_task(base=IdempotentTask, name="imports.run", key=None)  # the service carries the key
def run(*, import_id: str, **facts: Any) -> str:
    """Import a file, or what is left of it."""
    return str(run_import(import_id=import_id)["status"])


@shared_task(name="imports.go_on", ignore_result=True)
def go_on() -> None:
    """Send workers to imports whose own have died, and remove files that nobody needs."""
    services.go_on_with_all(now=timezone.now())
    storing.sweep(now=timezone.now())
