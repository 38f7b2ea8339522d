from django.urls import path

from .views import PayView, RefundsView

urlpatterns = [
    path("orders/<str:order_no>/pay", PayView.as_view(), name="order-pay"),
    path("orders/<str:order_no>/refunds", RefundsView.as_view(), name="order-refunds"),
]
