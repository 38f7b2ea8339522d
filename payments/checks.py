"""The ``PAYMENTS_*`` settings: told at start, rather than by the first buyer who pays."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.utils.module_loading import import_string


@register("payments")
def check_lease(**kwargs: Any) -> list[CheckMessage]:
    """A lease that ends while the provider is still asked lets the next attempt ask as well."""
    longest = settings.PAYMENTS_CONNECT_TIMEOUT + settings.PAYMENTS_READ_TIMEOUT
    if longest < settings.PAYMENTS_LEASE:
        return []
    return [
        Error(
            f"PAYMENTS_LEASE ({settings.PAYMENTS_LEASE}) ends before a call to a provider does ({longest}).",
            hint="Make it longer than PAYMENTS_CONNECT_TIMEOUT + PAYMENTS_READ_TIMEOUT, or shorten these.",
            id="payments.E001",
        )
    ]


@register("payments")
def check_methods(**kwargs: Any) -> list[CheckMessage]:
    """A method without a provider cannot charge anything."""
    return [
        Error(
            f"The payment method {method!r} is for the provider {name!r}, which there is not.",
            hint=f"PAYMENTS_PROVIDERS has {', '.join(settings.PAYMENTS_PROVIDERS)}.",
            id="payments.E002",
        )
        for method, name in settings.PAYMENTS_METHODS.items()
        if name not in settings.PAYMENTS_PROVIDERS
    ]


@register("payments")
def check_providers(**kwargs: Any) -> list[CheckMessage]:
    """Each provider is what its dotted path says."""
    return [
        Error(
            f"PAYMENTS_PROVIDERS[{name!r}] cannot be imported: {reason}.",
            hint="Give the dotted path of something that returns a payments.providers.base.Provider.",
            id="payments.E003",
        )
        for name, path in settings.PAYMENTS_PROVIDERS.items()
        if (reason := _why_not(path))
    ]


def _why_not(path: str) -> str:
    try:
        provider = import_string(path)
    except ImportError as error:
        return str(error)
    return "" if callable(provider) else f"{path} cannot be called"
