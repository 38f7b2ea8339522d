"""The tests' settings, with a broker that gives up on a worker soon."""

import os
from datetime import timedelta

from tests.settings import *  # noqa: F403
from tests.settings import CELERY_BROKER_TRANSPORT_OPTIONS as OPTIONS

CELERY_TASK_DEFAULT_QUEUE = os.environ["TEST_QUEUE"]
CELERY_BROKER_TRANSPORT_OPTIONS = {
    **OPTIONS,
    "visibility_timeout": 2,
    "unacked_restore_interval": 0.5,
    "unacked_restore_throttle": 1,
}
CELERY_BROKER_CONNECTION_TIMEOUT = 2
IDEMPOTENCY_RETRY_AFTER = timedelta(seconds=0.2)
