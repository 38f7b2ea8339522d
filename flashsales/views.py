"""Buying in a flash sale over HTTP: a ticket at once, the order a moment later."""

import json
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import Http404
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from idempotency.exceptions import KeyInvalid
from idempotency.mixins import IdempotentMixin
from idempotency.policies import Policy
from idempotency.values import Outcome
from shop.envelopes import duplicate, envelope

from . import door, services
from .models import FlashSale, Ticket
from .serializers import BuySerializer, ticket_data


class FlashOrdersView(IdempotentMixin, APIView):
    """``POST /api/flash-sales/{sku}/orders {quantity?}``"""

    idempotency_policy = Policy(operation="flashsales.order", retention=timedelta(hours=24), required=True)

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        """Keep the gate out of any transaction: the engine opens its own behind it."""
        return transaction.non_atomic_requests(super().as_view(**initkwargs))

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Put the door behind authentication and throttling, and before the claim."""
        super().initial(request, *args, **kwargs)
        if request.method == "POST":
            self.post = partial(self._through_the_door, self.post)

    def post(self, request: Request, sku: str) -> Response:
        """Answer 202 with a ticket, once ticket and message are committed."""
        serializer = BuySerializer(data=request.data or {})
        serializer.is_valid(raise_exception=True)
        buyer = {"user_id": request.user.pk, "mark": self._mark()}
        try:
            ticket, created = services.buy(sku=sku, now=timezone.now(), **buyer)
        except FlashSale.DoesNotExist as error:
            raise Http404 from error
        return _queued(ticket) if created else _again(ticket)

    def get_replay_response(self, outcome: Outcome) -> Response:
        """Answer a repeat: the first ticket, with its present status."""
        number = json.loads(outcome.body)["data"]["ticket"]
        return _again(Ticket.objects.select_related("order").get(number=number))

    def _through_the_door(self, post: Any, request: Request, sku: str) -> HttpResponseBase:
        mark = self._mark()
        if mark is None:  # refused behind the door
            return post(request, sku=sku)
        with door.passed(sku=sku, user_id=request.user.pk, mark=mark):
            return post(request, sku=sku)

    def _mark(self) -> str | None:
        try:
            key = self.get_idempotency_key()
        except KeyInvalid:
            return None
        return None if key is None else door.mark_of(key)


class TicketView(APIView):
    """``GET /api/flash-sales/tickets/{ticket}``"""

    def get(self, request: Request, ticket: UUID) -> Response:
        """Answer the user's own ticket: queued, created with its orderId, or sold_out."""
        found = Ticket.objects.select_related("order").filter(number=ticket, user=request.user).first()
        if found is None:
            raise Http404
        return envelope(data=ticket_data(found), message=_("Ticket"))


def _queued(ticket: Ticket) -> Response:
    return envelope(
        data=ticket_data(ticket),
        message=_("You are in the queue, your order is being made"),
        status=status.HTTP_202_ACCEPTED,
        headers={"Location": reverse("flash-ticket", args=[ticket.number])},
    )


def _again(ticket: Ticket) -> Response:
    return duplicate(data=ticket_data(ticket), message=_("You have a ticket already"))
