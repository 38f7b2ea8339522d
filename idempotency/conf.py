"""The settings, read at each use, so that a test's or a tenant's override counts at once."""

from datetime import timedelta
from typing import Any, Final

from django.conf import settings

DEFAULTS: Final[dict[str, Any]] = {
    "IDEMPOTENCY_DATABASE": None,
    "IDEMPOTENCY_CACHE": None,
    "IDEMPOTENCY_HEADER": "Idempotency-Key",
    "IDEMPOTENCY_REQUIRED": True,
    "IDEMPOTENCY_RETENTION": timedelta(hours=24),
    "IDEMPOTENCY_WAIT": timedelta(0),
    "IDEMPOTENCY_REPLAY_FIRST": False,
    "IDEMPOTENCY_REMEMBER": frozenset(),
    "IDEMPOTENCY_BODY_LIMIT": 1024 * 1024,
    "IDEMPOTENCY_RETRY_AFTER": timedelta(seconds=1),
    "IDEMPOTENCY_RERUNS": 3,
    "IDEMPOTENCY_OUTBOX_ROUTES": {},
    "IDEMPOTENCY_OUTBOX_SENDER": "idempotency.celery.send",
    "IDEMPOTENCY_OUTBOX_RELAY_ON_COMMIT": True,
    "IDEMPOTENCY_OUTBOX_LEASE": timedelta(seconds=30),
    "IDEMPOTENCY_OUTBOX_MAX_ATTEMPTS": 10,
    "IDEMPOTENCY_OUTBOX_RETENTION": timedelta(days=7),
    "IDEMPOTENCY_PROBLEM_URL": "https://django-idempotency.readthedocs.io/en/latest/problems.html#{code}",
}


def get(name: str) -> Any:
    """Return the setting ``IDEMPOTENCY_<name>``, or its default."""
    name = f"IDEMPOTENCY_{name}"
    return getattr(settings, name, DEFAULTS[name])
