"""Those who move the money. Each is one object that speaks :class:`~payments.providers.base.Provider`."""

from functools import cache

from django.conf import settings
from django.utils.module_loading import import_string

from .base import Provider


@cache
def provider(name: str) -> Provider:
    """Return the provider of this name, from the setting ``PAYMENTS_PROVIDERS`` (names and dotted paths).

    :raises KeyError: when there is none.
    """
    return import_string(settings.PAYMENTS_PROVIDERS[name])()
