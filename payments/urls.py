from django.urls import path

import shop.converters  # noqa: F401

from .views import PayView, RefundsView

urlpatterns = [
    path("orders/<code:order_no>/pay", PayView.as_view(), name="order-pay"),
    path("orders/<code:order_no>/refunds", RefundsView.as_view(), name="order-refunds"),
]
