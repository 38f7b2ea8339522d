"""The ``IMPORTS_*`` settings."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from .reading.limits import Limits


@register("imports")
def check_lease(**kwargs: Any) -> list[CheckMessage]:
    """A lease that ends while the file is still read lets another worker read it as well."""
    longest = timedelta(seconds=Limits.from_settings().max_seconds)
    if longest < settings.IMPORTS_LEASE:
        return []
    return [
        Error(
            f"IMPORTS_LEASE ({settings.IMPORTS_LEASE}) ends before the reading of a file must ({longest}).",
            hint="Make it longer than IMPORTS_MAX_SECONDS (60 by default), or shorten that.",
            id="imports.E001",
        )
    ]
