from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ImportsConfig(AppConfig):
    """Files of orders, each imported once."""

    name = "imports"
    verbose_name = _("Imports")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have the settings checked."""
        from . import checks  # noqa: F401  they register themselves
