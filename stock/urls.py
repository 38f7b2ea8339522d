from django.urls import path

from .views import StockItemView

urlpatterns = [
    path("stock/<str:sku>", StockItemView.as_view(), name="stock-item"),
]
