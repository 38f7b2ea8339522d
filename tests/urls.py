"""The shop's addresses, and the lab's."""

from django.urls import include, path

from config import urls as shop
from config.urls import handler400, handler403, handler404, handler500

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]

urlpatterns = [path("lab/", include("tests.lab.urls")), *shop.urlpatterns]
