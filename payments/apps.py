from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class PaymentsConfig(AppConfig):
    """Money that comes in for an order, and money that goes back."""

    name = "payments"
    verbose_name = _("Payments")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks of the settings."""
        from . import checks  # noqa: F401
