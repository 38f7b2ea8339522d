"""The shop's settings, with a queue of the test's own and mails that stay here."""

import os

from config.settings import *  # noqa: F403

CELERY_TASK_DEFAULT_QUEUE = os.environ.get("TEST_QUEUE", "celery")
EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
