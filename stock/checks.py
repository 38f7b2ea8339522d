"""What ``manage.py check`` says of the stock's setting."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error

from .strategies import STRATEGIES


def check_strategy(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """``stock.E001``: the strategy is none of those there are."""
    if getattr(settings, "STOCK_STRATEGY", None) in STRATEGIES:
        return []
    hint = f"Use one of {', '.join(STRATEGIES)}."
    return [Error("STOCK_STRATEGY names no strategy.", hint=hint, id="stock.E001")]
