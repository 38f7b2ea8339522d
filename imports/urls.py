from django.urls import path, re_path

from .views import CancelView, DetailView, ErrorsView, FormView, UploadView

urlpatterns = [
    path("imports", UploadView.as_view(), name="imports"),
    re_path(r"^imports/form\.(?P<kind>csv|xlsx)$", FormView.as_view(), name="import-form"),
    path("imports/<uuid:import_id>", DetailView.as_view(), name="import-detail"),
    path("imports/<uuid:import_id>/errors.csv", ErrorsView.as_view(), name="import-errors"),
    path("imports/<uuid:import_id>/cancel", CancelView.as_view(), name="import-cancel"),
]
