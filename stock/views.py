"""What is on hand."""

from django.http import Http404
from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from shop.envelopes import envelope

from .models import StockItem


class StockItemView(APIView):
    """``GET /api/stock/{sku}``: what is on hand, and the version to deduct by."""

    def get(self, request: Request, sku: str) -> Response:
        """Answer 200 with ``sku, remaining, version``, or 404."""
        item = StockItem.objects.filter(sku=sku).first()
        if item is None:
            raise Http404
        data = {"sku": item.sku, "remaining": item.on_hand, "version": item.version}
        return envelope(data=data, message=_("Stock"))
