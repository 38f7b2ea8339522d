"""Tasks as a worker runs them, on a broker in memory."""

from typing import Any

from celery import Celery
from celery.app.trace import build_tracer
from kombu import Queue

from idempotency.celery import IdempotentTask

from .effects import do


def deliver(task: IdempotentTask, *args: Any, headers: Any = None, **kwargs: Any) -> Any:
    """Run a task as a worker does; return what it tells the broker's side."""
    request = {
        "id": "task-1",
        "retries": 1,
        "expires": "2099-01-01T00:00:00+00:00",
        "delivery_info": {"exchange": "", "routing_key": task.app.conf.task_default_queue, "priority": 3},
        "reply_to": "replies",
        "correlation_id": "task-1",
        **(headers or {}),
    }
    return build_tracer(task.name, task, app=task.app)("task-1", args, kwargs, request)


def state(traced: Any) -> str | None:
    return traced.info and traced.info.state


def waiting(app: Celery) -> list[Any]:
    """Take the messages that wait in the queue."""
    with app.connection_for_read() as connection:
        queue = Queue(app.conf.task_default_queue, channel=connection.channel())
        queue.declare()
        return list(iter(lambda: queue.get(no_ack=True), None))


def raising(app: Celery, error: Exception, *, name: str = "lab.raising", **options: Any) -> IdempotentTask:
    @app.task(base=IdempotentTask, shared=False, name=name, **options)
    def raising(message_id: str) -> None:
        do("tried")
        raise error

    return raising
