from django.urls import path

from .views import StartView, favicon

urlpatterns = [
    path("", StartView.as_view(), name="start"),
    path("favicon.ico", favicon, name="favicon"),
]
