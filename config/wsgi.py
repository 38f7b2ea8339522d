"""Serve the shop: ``gunicorn config.wsgi``."""

import os

from django.core.wsgi import get_wsgi_application

from .requests import WSGICharsetRequest

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application = get_wsgi_application()
application.request_class = WSGICharsetRequest
