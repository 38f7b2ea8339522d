from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RewardsConfig(AppConfig):
    """What a buyer gets for an order: coupons and points."""

    name = "rewards"
    verbose_name = _("Rewards")
    default_auto_field = "django.db.models.BigAutoField"
