"""Relays of a test's outbox: in this process, and as processes of their own."""

import os
import subprocess
import sys
from typing import Any
from urllib.parse import urlsplit

from django.db import connections

from tests.processes import ROOT

from .models import Effect
from .outbox import Outbox


def fail(error: Exception, *, at: set[int] | None = None) -> Any:
    """Raise the error for these numbers, or for all."""

    def raiser(envelope: Any) -> None:
        if at is None or envelope.payload["number"] in at:
            raise error

    return raiser


def relay_patiently(box: Outbox) -> int:
    """Relay until all is sent, whoever sends it."""
    sent = 0
    while box.messages.pending().exists():
        sent += box.relay(batch_size=7).sent
    return sent


def effects(box: Outbox) -> list[str]:
    return list(Effect.objects.using(box.database).order_by("pk").values_list("name", flat=True))


def relay_process(box: Outbox, *arguments: str, once: bool = True, env: dict[str, str] | None = None) -> Any:
    return process(box, "manage.py", "idempotency_relay", *["--once"] * once, *arguments, env=env)


def process(box: Outbox, *arguments: str, env: dict[str, str] | None = None) -> Any:
    """Python on the database of the test."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={
            **os.environ,
            "DATABASE_URL": url(box.database),
            "DJANGO_SETTINGS_MODULE": "tests.lab.outbox_settings",
            "DEBUG": "true",
            **(env or {}),
        },
    )


def url(alias: str) -> str:
    """The address of a database of this test, for other processes."""
    connection = connections[alias]
    name = str(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite":
        return f"sqlite:///{name}"
    variable = {"postgresql": "DATABASE_URL", "mysql": "MARIADB_URL"}[connection.vendor]
    return urlsplit(os.environ[variable])._replace(path=f"/{name}").geturl()
