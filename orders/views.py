"""Orders over HTTP: the create order scenario, and reading and cancelling what it made."""

import json
from typing import Any

from django.db import transaction
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework import status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from idempotency.exceptions import KeyMissing
from idempotency.mixins import IdempotentMixin
from idempotency.policies import Policy
from idempotency.values import Outcome
from shop.envelopes import duplicate, envelope
from shop.pauses import pause

from . import services
from .exceptions import CurrencyMismatch, UnknownSku
from .labels import order_label
from .models import Order, OrderQuerySet
from .pagination import OrderPagination
from .serializers import OrderSerializer, order_data


class OrderViewSet(IdempotentMixin, viewsets.GenericViewSet):
    """A user's orders. A repeat of any call is answered with 200 and ``isDuplicate: true``."""

    idempotency_policy = Policy(operation="orders.create", required=False)
    serializer_class = OrderSerializer
    pagination_class = OrderPagination
    lookup_field = "order_no"
    lookup_value_regex = r"[^/.\x00]+"  # PostgreSQL takes no text with a NUL in it

    def get_queryset(self) -> OrderQuerySet:
        """The user's own orders; staff reach each order, but list their own."""
        user = self.request.user
        if user.is_staff and self.detail:
            return Order.objects.all()
        return Order.objects.filter(user=user)

    def create(self, request: Request) -> Response:
        """Order once: by ``Idempotency-Key``, by ``client_order_no``, or by both."""
        serializer = self.get_serializer(data=request.data)
        self._check_a_key_is_there(serializer.initial_data)
        serializer.is_valid(raise_exception=True)
        try:
            order, created = services.create_order(
                user_id=request.user.pk, now=timezone.now(), **serializer.arguments()
            )
        except (UnknownSku, CurrencyMismatch) as refusal:
            raise serializer.unsellable(refusal) from refusal
        pause(request)
        return self._created(order) if created else self._duplicate(order)

    def list(self, request: Request) -> Response:
        """Answer a page of the user's own orders, newest first."""
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response([order_data(order) for order in page])

    def retrieve(self, request: Request, order_no: str) -> Response:
        """Answer one order."""
        return envelope(data=order_data(self.get_object()), message=_("Order"))

    @action(detail=True, methods=["post"], idempotency_policy=None)  # the state machine needs no key
    def cancel(self, request: Request, order_no: str) -> Response:
        """Cancel a pending order and give its stock back, once."""
        order = self.get_object()
        cancelled = services.cancel_order(order=order, now=timezone.now())
        order = _present(order.order_no)
        answer = envelope if cancelled else duplicate
        return answer(data=order_data(order), message=_("Order cancelled"))

    @action(detail=True, methods=["post"], idempotency_policy=None)
    def ship(self, request: Request, order_no: str) -> Response:
        """Ship a paid order, once. For staff."""
        order = self.get_object()
        if not request.user.is_staff:
            self.permission_denied(request)
        shipped = services.ship_order(order=order, now=timezone.now())
        order = _present(order.order_no)
        answer = envelope if shipped else duplicate
        return answer(data=order_data(order), message=_("Order shipped"))

    def get_idempotency_label(self, key: str) -> str:
        """Show the key to people as ``{userId}_{cartId}_{uuid}``."""
        cart_id = self.request.data.get("cart_id", "") if isinstance(self.request.data, dict) else ""
        return order_label(user_id=self.request.user.pk, cart_id=str(cart_id), key=key)

    def get_replay_response(self, outcome: Outcome) -> Response:
        """Answer a repeat: the first order, with its present status."""
        order_no = json.loads(outcome.body)["data"]["orderId"]
        return self._duplicate(_present(order_no))

    def _check_a_key_is_there(self, data: Any) -> None:
        named = isinstance(data, dict) and data.get("client_order_no")
        if not named and self.get_idempotency_key() is None:
            raise KeyMissing

    def _created(self, order: Order) -> Response:
        return envelope(
            data=order_data(order),
            message=_("Order created"),
            status=status.HTTP_201_CREATED,
            headers={"Location": reverse("order-detail", args=[order.order_no])},
        )

    def _duplicate(self, order: Order) -> Response:
        return duplicate(data=order_data(order), message=_("Order created"))


def _present(order_no: str) -> Order:
    """Read the order as it is now: the lock sees past the snapshot of REPEATABLE READ."""
    with transaction.atomic():
        return Order.objects.filter(order_no=order_no).locked()
