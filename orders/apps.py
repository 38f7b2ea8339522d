from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class OrdersConfig(AppConfig):
    """What is sold, for how much, and who ordered it."""

    name = "orders"
    verbose_name = _("Orders")
    default_auto_field = "django.db.models.BigAutoField"
