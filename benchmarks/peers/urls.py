from functools import partial

from django.conf import settings
from django.urls import path

from .views import HANDLERS, drf_view

urlpatterns = [path(kind, settings.ADAPTER.view(partial(drf_view, kind))) for kind in HANDLERS]
