"""The Celery app of the worker and of this process."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.messages.settings")

app = Celery("benchmarks", set_as_current=True)
app.config_from_object("django.conf:settings", namespace="CELERY")
