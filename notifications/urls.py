from django.urls import path

from .views import SmsView

urlpatterns = [path("sms", SmsView.as_view(), name="sms")]
