"""A view whose answer is never the same twice, unless the library replays it."""

import secrets

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from idempotency.mixins import IdempotentMixin
from idempotency.policies import Policy
from stock.models import StockItem
from tests.scenarios.gates import pass_gate


class EffectView(IdempotentMixin, APIView):
    """Take one piece for a reference of its own: a second run takes a second piece."""

    idempotency_policy = Policy(operation="effects.create")

    def post(self, request: Request) -> Response:
        effect = secrets.token_hex(500)
        StockItem.objects.deduct(sku="TEA-100", quantity=1, reference=f"effect:{effect[:32]}")
        pass_gate("in_handler")
        return Response({"茶": effect}, status=201, headers={"Location": f"/effects/{effect[:32]}"})
