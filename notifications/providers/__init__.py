"""Those who bring messages. Each is an object that speaks :class:`~notifications.providers.base.Provider`."""

from functools import cache

from django.conf import settings
from django.utils.module_loading import import_string

from .base import Provider


@cache
def provider(channel: str) -> Provider:
    """Return the provider of this channel, from the setting ``NOTIFICATIONS_PROVIDERS`` (dotted paths).

    :raises KeyError: when there is none.
    """
    return import_string(settings.NOTIFICATIONS_PROVIDERS[channel])()
