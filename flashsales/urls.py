from django.urls import path

import shop.converters  # noqa: F401

from .views import FlashOrdersView, TicketView

urlpatterns = [
    path("flash-sales/<code:sku>/orders", FlashOrdersView.as_view(), name="flash-orders"),
    path("flash-sales/tickets/<uuid:ticket>", TicketView.as_view(), name="flash-ticket"),
]
