"""Serve the shop: ``uvicorn config.asgi:application``."""

import os

from django.core.asgi import get_asgi_application
from django.db import connections

from .requests import ASGICharsetRequest

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application = get_asgi_application()
application.request_class = ASGICharsetRequest

for settings in connections.settings.values():
    settings["CONN_MAX_AGE"] = 0  # here each request has a thread of its own: nobody would use it again
