"""Texts over HTTP. The service carries the keys; this view checks and translates."""

from django.db import transaction
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from idempotency.exceptions import OutcomeUnknown
from shop.envelopes import duplicate, envelope
from shop.pauses import pause

from .sending import send
from .serializers import SmsSerializer, sms_data

UNKNOWN = {"sendStatus": "unknown", "isDuplicate": False, "sentAt": None}

RETRY_AFTER = {"Retry-After": "5"}
"""When to ask again for an outcome that is not known yet."""


@method_decorator(transaction.non_atomic_requests, name="dispatch")  # the service commits its claim first
class SmsView(APIView):
    """``POST /api/sms {phone, template, biz_id?, kind?, campaign_id?}``: one scope for the whole shop."""

    def post(self, request: Request) -> Response:
        """Send once in each window, however often it is asked for."""
        serializer = SmsSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        pause(request)
        try:
            delivery = send(serializer.text)
        except OutcomeUnknown:
            return envelope(
                data=UNKNOWN,
                message=_("It is not known yet whether the SMS was sent"),
                status=status.HTTP_202_ACCEPTED,
                headers=RETRY_AFTER,
            )
        answer = duplicate if delivery.is_duplicate else envelope
        return answer(data=sms_data(delivery), message=_("SMS sent"))
