"""The start page."""

import uuid
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.templatetags.static import static
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.generic import TemplateView

from shop.money import decimal_string

from .commands import ORDER_NO, SNIPPET, commands
from .data import ARTICLES, CURRENCY
from .scenarios import SCENARIOS


@method_decorator(never_cache, name="dispatch")  # each visitor gets a key of their own
class StartView(TemplateView):
    """What this is, commands to copy, and what the walk shows."""

    template_name = "demo/start.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add what the page tells. ``?order=`` and ``?key=`` go into the commands where they are such."""
        order_no, key = self.request.GET.get("order", "").strip(), _key(self.request.GET.get("key", ""))
        return super().get_context_data(
            commands=commands(api=self.request.build_absolute_uri("/api"), key=key, order_no=order_no),
            key=key,
            order_no=order_no if ORDER_NO.fullmatch(order_no) else "",
            scenarios=[(title, _(" ".join((run.__doc__ or "").split()))) for title, run in SCENARIOS],
            articles=_articles(),
            snippet=SNIPPET,
            sandbox=settings.SANDBOX_URL,
            has_demo_data=settings.DEBUG,
            languages=settings.LANGUAGES,
            **kwargs,
        )


def favicon(request: HttpRequest) -> HttpResponse:
    """Lead to the icon those who ask for it without having read the page."""
    return redirect(static("demo/favicon.svg"))


def _key(wanted: str) -> str:
    try:
        return str(uuid.UUID(wanted))
    except ValueError:
        return str(uuid.uuid4())


def _articles() -> list[tuple[str, str]]:
    prices = ((sku, price_minor) for sku, (_name, price_minor) in ARTICLES.items())
    return [(sku, decimal_string(amount_minor=price, currency=CURRENCY)) for sku, price in prices]
