"""Pay and refund over HTTP. The services carry the keys; these views check access and translate."""

from django.db import transaction
from django.shortcuts import get_object_or_404
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from idempotency.exceptions import OutcomeUnknown, Refused
from idempotency.transitions import InvalidTransition
from orders.models import Order, Status
from shop.envelopes import duplicate, envelope
from shop.pauses import pause

from .exceptions import RefundMismatch
from .models import Refund, RefundStatus
from .paying import pay
from .refunding import refund
from .serializers import PaySerializer, RefundSerializer, pay_data, refund_data

RETRY_AFTER = {"Retry-After": "5"}
"""When to ask again for an outcome that is not known yet."""


@method_decorator(transaction.non_atomic_requests, name="dispatch")  # the services commit their claims first
class OrderView(APIView):
    """Something about one order, for its owner and for staff; others do not see that it exists."""

    def get_order(self, order_no: str) -> Order:
        """:raises Http404: for strangers."""
        user = self.request.user
        orders = Order.objects.all() if user.is_staff else Order.objects.filter(user=user)
        return get_object_or_404(orders, order_no=order_no)


class PayView(OrderView):
    """``POST /api/orders/{orderId}/pay {method}``, for the owner."""

    def post(self, request: Request, order_no: str) -> Response:
        """Pay once, however often, by whatever method and through however many doors it is asked for."""
        order = self.get_order(order_no)
        if order.user_id != request.user.pk:
            self.permission_denied(request)
        serializer = PaySerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        if order.is_paid:
            return _paid_before(order)
        pause(request)
        try:
            run = pay.run(order_no=order.order_no, method=serializer.validated_data["method"])
        except OutcomeUnknown:
            return _unknown(pay_data(order, unknown=True), _("The payment's outcome is not known yet"))
        except Refused:
            order.refresh_from_db()
            if order.is_paid:  # through another door, meanwhile
                return _paid_before(order)
            _check_is_pending(order)
            raise
        order.refresh_from_db()
        if not order.is_paid:  # the charge came too late: it goes back
            raise InvalidTransition(order.status, Status.PAID)
        answer = duplicate if run.replayed else envelope
        return answer(data=pay_data(order), message=_("Order paid"))


class RefundsView(OrderView):
    """``POST /api/orders/{orderId}/refunds {refund_no, amount}``, for the owner and staff."""

    def post(self, request: Request, order_no: str) -> Response:
        """Give money back once for each refund number."""
        order = self.get_order(order_no)
        serializer = RefundSerializer(data=request.data, context={"currency": order.currency})
        serializer.is_valid(raise_exception=True)
        refund_no, amount_minor = serializer.validated_data["refund_no"], serializer.validated_data["amount"]
        if known := _known(order, refund_no, amount_minor):
            return duplicate(data=refund_data(order, known), message=_("Refunded"))
        try:
            run = refund.run(order_no=order.order_no, refund_no=refund_no, amount_minor=amount_minor)
        except OutcomeUnknown:
            begun = order.refunds.get(refund_no=refund_no)
            return _unknown(
                refund_data(order, begun, unknown=True), _("The refund's outcome is not known yet")
            )
        order.refresh_from_db()
        made = order.refunds.get(refund_no=refund_no)
        if run.replayed:
            return duplicate(data=refund_data(order, made), message=_("Refunded"))
        return envelope(data=refund_data(order, made), message=_("Refunded"), status=status.HTTP_201_CREATED)


def _check_is_pending(order: Order) -> None:
    if order.status != Status.PENDING:
        raise InvalidTransition(order.status, Status.PAID)


def _paid_before(order: Order) -> Response:
    return duplicate(data=pay_data(order), message=_("Order paid"))


def _unknown(data: dict[str, object], message: str) -> Response:
    return envelope(data=data, message=message, status=status.HTTP_202_ACCEPTED, headers=RETRY_AFTER)


def _known(order: Order, refund_no: str, amount_minor: int) -> Refund | None:
    """Return the refund of this number that is made already.

    :raises RefundMismatch: when the number belongs to another amount.
    """
    known = order.refunds.filter(refund_no=refund_no).first()
    if known and known.amount_minor != amount_minor:
        raise RefundMismatch(refund_no)
    return known if known and known.status == RefundStatus.SUCCEEDED else None
