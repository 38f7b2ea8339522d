"""The shop's settings for processes that relay a test's outbox."""

from config.settings import *  # noqa: F403
from config.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.lab"]
IDEMPOTENCY_OUTBOX_ROUTES = {"lab.happened": ["lab.hear"], "lab.deadly": []}
IDEMPOTENCY_OUTBOX_SENDER = "tests.lab.outbox.send_to_table"
IDEMPOTENCY_OUTBOX_RELAY_ON_COMMIT = True
