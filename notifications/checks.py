"""Is the lease long enough?"""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register


@register("notifications")
def check_lease(**kwargs: Any) -> list[CheckMessage]:
    """A lease that ends while the provider may still answer is taken over from an owner who is alive."""
    longest = settings.NOTIFICATIONS_CONNECT_TIMEOUT + settings.NOTIFICATIONS_READ_TIMEOUT
    if longest < settings.NOTIFICATIONS_LEASE:
        return []
    return [
        Error(
            f"NOTIFICATIONS_LEASE is {settings.NOTIFICATIONS_LEASE}, and one call may take {longest}.",
            hint="Make it longer than NOTIFICATIONS_CONNECT_TIMEOUT and NOTIFICATIONS_READ_TIMEOUT together.",
            id="notifications.E001",
        )
    ]
