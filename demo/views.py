"""The start page."""

import uuid
from typing import Any

from django.conf import settings
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.generic import TemplateView


@method_decorator(never_cache, name="dispatch")  # each visitor gets a key of their own
class StartView(TemplateView):
    """What this is, and commands to copy."""

    template_name = "demo/start.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add what the commands need."""
        return super().get_context_data(
            api=self.request.build_absolute_uri("/api"),
            key=uuid.uuid4(),
            has_demo_data=settings.DEBUG,
            languages=settings.LANGUAGES,
            **kwargs,
        )
