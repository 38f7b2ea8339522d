import os

from benchmarks.project.settings import *  # noqa: F403
from benchmarks.project.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "idempotency"]
IDEMPOTENCY_OUTBOX_RELAY_ON_COMMIT = False  # the relay is what is measured
IDEMPOTENCY_OUTBOX_ROUTES = {"benchmarks.told": ["benchmarks.guarded"]}
CELERY_BROKER_URL = os.environ["BROKER_URL"]
CELERY_IMPORTS = ["benchmarks.messages.tasks"]
CELERY_TASK_DEFAULT_QUEUE = os.environ["BENCHMARK_QUEUE"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
