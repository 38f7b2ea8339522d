from django.urls import path

import shop.converters  # noqa: F401

from .views import StockItemView

urlpatterns = [
    path("stock/<code:sku>", StockItemView.as_view(), name="stock-item"),
]
