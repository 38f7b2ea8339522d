"""The shop for gunicorn, with workers that die where a request says."""

from django.core.wsgi import get_wsgi_application

shop = get_wsgi_application()  # sets Django up, before the library is imported

from idempotency.testing import crashing  # noqa: E402

application = crashing(shop)
