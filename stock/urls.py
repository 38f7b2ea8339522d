from django.urls import path

import shop.converters  # noqa: F401

from .views import DeductionsView, StockItemView

urlpatterns = [
    path("stock/<code:sku>", StockItemView.as_view(), name="stock-item"),
    path("stock/<code:sku>/deductions", DeductionsView.as_view(), name="stock-deductions"),
]
