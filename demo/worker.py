"""Worker, broker and relay in one process, so that the demo needs no server: ``manage.py demo_worker``.

The broker is this process's memory. So a message counts as sent only when its tasks have returned: a worker
that dies leaves it in the outbox, and the next one sends it again.
"""

from datetime import timedelta
from threading import Event, Thread
from typing import Any, Final
from uuid import UUID

from celery import current_app
from celery.beat import Scheduler, Service
from celery.exceptions import TimeoutError as TaskTakesLonger
from django.core.management import call_command

from idempotency import celery
from idempotency.exceptions import BrokerUnavailable
from idempotency.relaying import Envelope

PATIENCE: Final = timedelta(seconds=10)
"""How long the tasks of one message may take until other messages go first."""

LOOK: Final = timedelta(seconds=0.2)
"""Between two looks into the outbox, and half of that between two looks for a result."""

THREADS: Final = 8

_works = Event()
_handed: set[UUID] = set()
"""Messages that this process's worker has, and will have as long as it lives."""


class StillAtWork(Exception):
    """A task of the message waits for its next attempt; other messages go first."""


def send(message: Envelope) -> None:
    """Hand a message to the worker of this process, and return when all its tasks have returned.

    :raises BrokerUnavailable: where no such worker runs.
    :raises StillAtWork: when a task takes long. The message stays in the outbox, and is looked after again.
    """
    if not _works.is_set():
        raise BrokerUnavailable("Set BROKER_URL, or have manage.py demo_worker relay: nobody listens here.")
    patience = LOOK if message.id in _handed else PATIENCE
    if message.id not in _handed:
        celery.send(message)
        _handed.add(message.id)
    for task_id in celery.task_ids(message):
        _wait_for(task_id, patience)
    _handed.discard(message.id)


def work() -> None:
    """Work until SIGTERM or SIGINT."""
    app = current_app
    app.conf.update(result_backend="cache+memory://", task_ignore_result=False)
    app.conf.beat_schedule.pop("idempotency.relay", None)  # the relay below looks more often
    options: dict[str, Any] = {"pool": "threads", "concurrency": THREADS, "loglevel": "WARNING"}
    worker = app.Worker(**options, quiet=True, without_gossip=True, without_mingle=True)
    beat = Service(app, max_interval=1, scheduler_cls=Scheduler)
    Thread(target=beat.start, name="beat", daemon=True).start()
    Thread(target=_relay, name="relay", daemon=True).start()
    _works.set()
    worker.start()


def _wait_for(task_id: str, patience: timedelta) -> None:
    try:
        current_app.AsyncResult(task_id).get(
            patience.total_seconds(),
            propagate=False,  # a task that failed has returned too
            interval=LOOK.total_seconds() / 2,
            disable_sync_subtasks=False,  # this thread is no task's
        )
    except TaskTakesLonger as error:
        raise StillAtWork(task_id) from error


def _relay() -> None:
    call_command("idempotency_relay", interval=LOOK.total_seconds())
