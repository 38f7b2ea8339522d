"""With its database backend and its middleware."""

from collections.abc import Callable
from typing import Any

NAME = "drf-idempotency 1.0.0"
REQUIREMENTS = ("drf-idempotency==1.0.0", "Django>=5.2,<5.3")


def configure(settings: dict[str, Any]) -> None:
    settings["INSTALLED_APPS"] += ["drf_idempotency"]
    settings["MIDDLEWARE"] += ["drf_idempotency.middleware.IdempotencyMiddleware"]
    settings["IDEMPOTENCY"] = {"BACKEND": "drf_idempotency.backends.database.DatabaseBackend"}


def view(make: Callable[..., Any]) -> Any:
    return make()
