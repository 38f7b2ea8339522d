"""What is on hand, and taking some of it."""

from django.http import Http404
from django.utils.translation import gettext as _
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from shop.envelopes import duplicate, envelope

from .models import StockItem
from .serializers import DeductionSerializer, deduction_data


class StockItemView(APIView):
    """``GET /api/stock/{sku}``: what is on hand, and the version to deduct by."""

    def get(self, request: Request, sku: str) -> Response:
        """Answer 200 with ``sku, remaining, version``, or 404."""
        item = _item(sku)
        data = {"sku": item.sku, "remaining": item.on_hand, "version": item.version}
        return envelope(data=data, message=_("Stock"))


class DeductionsView(APIView):
    """``POST /api/stock/{sku}/deductions {order_no, quantity, version?}``"""

    def post(self, request: Request, sku: str) -> Response:
        """Take them once for each order number, whoever asks; with ``version`` only if it is current."""
        _item(sku)
        serializer = DeductionSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        arguments = serializer.arguments()
        deduction = StockItem.objects.deduct(sku=sku, **arguments)
        data = deduction_data(deduction, sku=sku, quantity=arguments["quantity"])
        if deduction.is_duplicate:
            return duplicate(data=data, message=_("Stock deducted"))
        return envelope(data=data, message=_("Stock deducted"), status=status.HTTP_201_CREATED)


def _item(sku: str) -> StockItem:
    """:raises Http404: when the article is unknown."""
    if item := StockItem.objects.filter(sku=sku).first():
        return item
    raise Http404
