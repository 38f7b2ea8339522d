"""Every address of the shop. Under ``/api`` none ends in a slash."""

from django.contrib import admin
from django.urls import include, path, re_path
from django.views.decorators.csrf import csrf_exempt

from . import health, problems

handler400 = "config.problems.bad_request"
handler403 = "config.problems.forbidden"
handler404 = "config.problems.page_not_found"
handler500 = "config.problems.server_error"

urlpatterns = [
    path("", include("demo.urls")),
    path("livez", health.livez, name="livez"),
    path("readyz", health.readyz, name="readyz"),
    path("admin/", admin.site.urls),
    path("i18n/", include("django.conf.urls.i18n")),
    path("api/", include("orders.urls")),
    path("api/", include("payments.urls")),
    path("api/", include("payments.callbacks.urls")),
    path("api/", include("flashsales.urls")),
    path("api/", include("notifications.urls")),
    path("api/", include("stock.urls")),
    path("api/", include("imports.urls")),
    # Also where DEBUG has a page of its own for unknown addresses.
    re_path("^api(?:/|$)", csrf_exempt(problems.page_not_found)),
]
