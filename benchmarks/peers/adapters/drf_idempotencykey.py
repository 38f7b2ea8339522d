from collections.abc import Callable
from typing import Any

NAME = "drf-idempotencykey 0.2.0"
REQUIREMENTS = ("drf-idempotencykey==0.2.0", "Django>=5.2,<5.3")


def configure(settings: dict[str, Any]) -> None:
    settings["INSTALLED_APPS"] += ["drf_idempotencykey"]


def view(make: Callable[..., Any]) -> Any:
    from drf_idempotencykey.mixins import DrfIdempotencyKeyMixin

    return make(DrfIdempotencyKeyMixin)
