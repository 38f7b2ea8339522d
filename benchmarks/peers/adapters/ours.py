from collections.abc import Callable
from typing import Any

NAME = "django-idempotency"
REQUIREMENTS: tuple[str, ...] = ()


def configure(settings: dict[str, Any]) -> None:
    settings["INSTALLED_APPS"] += ["idempotency"]


def view(make: Callable[..., Any]) -> Any:
    from idempotency.mixins import IdempotentMixin

    return make(IdempotentMixin)
