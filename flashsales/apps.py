from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class FlashSalesConfig(AppConfig):
    """Few units, many buyers, all at once."""

    name = "flashsales"
    verbose_name = _("Flash sales")
    default_auto_field = "django.db.models.BigAutoField"
