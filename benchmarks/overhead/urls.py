"""One view as REST framework's users write it, as it is and guarded."""

from django.db import transaction
from django.db.models import F
from django.urls import path
from rest_framework import serializers, status
from rest_framework.exceptions import APIException
from rest_framework.generics import CreateAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from benchmarks.project.models import Order, Stock
from idempotency.mixins import IdempotentMixin
from idempotency.policies import Policy


class OrderSerializer(serializers.ModelSerializer):
    class Meta:
        model = Order
        fields = ["id", "sku", "amount", "created_at"]


class OutOfStock(APIException):
    status_code = status.HTTP_409_CONFLICT


class Orders(CreateAPIView):
    """One conditional update and one insert, in no transaction of its own."""

    serializer_class = OrderSerializer

    def perform_create(self, serializer: OrderSerializer) -> None:
        sku, amount = serializer.validated_data["sku"], serializer.validated_data["amount"]
        if not Stock.objects.filter(sku=sku, on_hand__gte=amount).update(on_hand=F("on_hand") - amount):
            raise OutOfStock
        serializer.save(user=self.request.user)


class AtomicOrders(Orders):
    def post(self, request: Request) -> Response:
        with transaction.atomic():
            return super().post(request)


class GuardedOrders(IdempotentMixin, Orders):
    """The guard's transaction is the one ``atomic()``."""


class LookingOrders(GuardedOrders):
    """Looks for an outcome before its transaction begins."""

    idempotency_policy = Policy(replay_first=True)


class GuardedAtomicOrders(IdempotentMixin, AtomicOrders):
    """The view's own ``atomic()`` has become a savepoint."""


class Nothing(APIView):
    """Authenticates: what every answer costs, a replay too."""

    def post(self, request: Request) -> Response:
        return Response(status=status.HTTP_201_CREATED)


urlpatterns = [
    path("nothing", Nothing.as_view()),
    path("plain", AtomicOrders.as_view()),
    path("guarded", GuardedOrders.as_view()),
    path("guarded-looks", LookingOrders.as_view()),
    path("guarded-atomic", GuardedAtomicOrders.as_view()),
]
