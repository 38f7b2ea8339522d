"""Settings of processes that are killed again and again: each message is handed over several times."""

import os
from datetime import timedelta

from tests.messages.publishing import ROUTES
from tests.messages.settings import *  # noqa: F403
from tests.messages.settings import CELERY_BROKER_TRANSPORT_OPTIONS as OPTIONS

CELERY_BROKER_TRANSPORT_OPTIONS = {
    **OPTIONS,
    "unacked_mutex_expire": 10,  # a worker that is killed while it restores messages keeps the others from it
}
CELERY_IMPORTS = ["tests.messages.campaign_tasks"]
IDEMPOTENCY_OUTBOX_SENDER = os.environ.get("TEST_SENDER", "tests.messages.duplicating.send")
IDEMPOTENCY_OUTBOX_RELAY_ON_COMMIT = "TEST_SENDER" not in os.environ
IDEMPOTENCY_OUTBOX_LEASE = timedelta(seconds=3)
IDEMPOTENCY_OUTBOX_ROUTES = ROUTES
