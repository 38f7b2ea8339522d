from django.apps import AppConfig
from django.core import checks
from django.utils.translation import gettext_lazy as _


class StockConfig(AppConfig):
    """How many pieces of each article are there."""

    name = "stock"
    verbose_name = _("Stock")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from .checks import check_strategy

        checks.register(check_strategy)
