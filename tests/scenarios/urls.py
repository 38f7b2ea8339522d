"""The shop's addresses, and that of a view which leaves its repeats to the library."""

from django.urls import path

from config import urls as shop
from config.urls import handler400, handler403, handler404, handler500
from tests.scenarios.views import EffectView

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]

urlpatterns = [path("effects", EffectView.as_view()), *shop.urlpatterns]
