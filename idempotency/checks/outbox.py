"""The outbox's way out: a sender that is there, and tasks that hear of the topics."""

from contextvars import ContextVar
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from django.core.checks import CheckMessage, Error, register
from django.core.exceptions import ImproperlyConfigured

from idempotency import conf, relaying

from .settings import RULES

CELERY: Final = "idempotency.celery.send"
ROUTES: Final = "IDEMPOTENCY_OUTBOX_ROUTES"
INSTALL_CELERY: Final = "pip install django-idempotency[celery], or name a sender of your own."

_looking: ContextVar[bool] = ContextVar("looking", default=False)


@register("idempotency")
def check_sender(**kwargs: Any) -> list[CheckMessage]:
    """Without a sender no message goes out. One that nobody publishes to needs none."""
    if not _routes():
        return []
    try:
        relaying.sender()
    except (ImproperlyConfigured, AttributeError) as error:
        hint = "Name a function in IDEMPOTENCY_OUTBOX_SENDER."
        is_celery = conf.get("OUTBOX_SENDER") == CELERY
        return [Error(str(error), hint=INSTALL_CELERY if is_celery else hint, id="idempotency.E007")]
    return []


@register("idempotency")
def check_tasks(**kwargs: Any) -> list[CheckMessage]:
    """A worker drops the messages of a task that it does not know."""
    if not _routes() or conf.get("OUTBOX_SENDER") != CELERY or not find_spec("celery") or _looking.get():
        return []
    known = _tasks()
    return [
        Error(
            f"The topic {topic!r} goes to the task {name!r}, which is not registered.",
            hint=f"Correct the name in {ROUTES}, or see that the Celery app finds the task: it is in the "
            "tasks module of an installed app, and the project's __init__ imports the Celery app.",
            id="idempotency.E008",
        )
        for topic, names in _routes().items()
        for name in names
        if name not in known
    ]


def _routes() -> dict[str, Any]:
    """Return the routes; none where they are malformed, which another check tells."""
    routes: dict[str, Any] = conf.get("OUTBOX_ROUTES")
    is_right, _ = RULES[ROUTES]
    return routes if is_right(routes) else {}


def _tasks() -> Any:
    """Return the registered tasks, once all modules of tasks are imported, which runs the checks again."""
    token = _looking.set(True)
    try:
        app = import_module("celery").current_app
        app.loader.import_default_modules()
        return app.tasks
    finally:
        _looking.reset(token)
