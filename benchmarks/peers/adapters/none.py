"""The control: what the views do without any guard."""

from collections.abc import Callable
from typing import Any

NAME = "no idempotency"
REQUIREMENTS: tuple[str, ...] = ()


def configure(settings: dict[str, Any]) -> None:
    pass


def view(make: Callable[..., Any]) -> Any:
    return make()
