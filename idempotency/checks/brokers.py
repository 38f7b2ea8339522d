"""Celery's settings: a broker that keeps messages, and says when it gives up on a worker."""

import sys
from importlib import import_module
from typing import Any, Final

from django.core.checks import CheckMessage, Warning, register  # noqa: A004

from idempotency import conf

CELERY: Final = "idempotency.celery"


@register("idempotency")
def check_visibility(**kwargs: Any) -> list[CheckMessage]:
    """Redis hands a message to another worker while the first still works on it."""
    app = _app()
    if not app or not _broker(app).startswith("redis"):
        return []
    if "visibility_timeout" in app.conf.broker_transport_options:
        return []
    return [
        Warning(
            "The broker is Redis and broker_transport_options has no visibility_timeout: what a dead worker "
            "had begun is begun again after an hour, and a task that runs longer is delivered once more.",
            hint="Set visibility_timeout to some more seconds than the longest task runs.",
            id="idempotency.W008",
        )
    ]


@register("idempotency", deploy=True)
def check_memory(**kwargs: Any) -> list[CheckMessage]:
    """A message in memory counts as handed over, and is gone with its process."""
    app = _app()
    if not app or not _broker(app).startswith("memory"):
        return []
    return [
        Warning(
            "The broker is this process's own memory: messages are gone when it ends, and no other worker "
            "finds them.",
            hint="Set broker_url to RabbitMQ (amqp://…) or Redis (redis://…).",
            id="idempotency.W009",
        )
    ]


@register("idempotency", deploy=True)
def check_eager(**kwargs: Any) -> list[CheckMessage]:
    """An eager task runs in its caller's transaction, and nobody delivers it again."""
    app = _app()
    if not app or not app.conf.task_always_eager:
        return []
    return [
        Warning(
            "task_always_eager is on: tasks run inside their caller's request and transaction, and none is "
            "delivered again after a crash.",
            hint="Turn it off; for tests, a worker in the same process shows more.",
            id="idempotency.W010",
        )
    ]


def _app() -> Any:
    """Return the Celery app where tasks of ours, or the outbox, use it."""
    sends = conf.get("OUTBOX_ROUTES") and conf.get("OUTBOX_SENDER") == f"{CELERY}.send"
    if "celery" in sys.modules and (sends or CELERY in sys.modules):
        return import_module("celery").current_app
    return None


def _broker(app: Any) -> str:
    return str(app.conf.broker_write_url or "")
