"""A plain Django view without authentication, and one of REST framework, as they are and guarded."""

import json

from django.db import transaction
from django.db.models import F
from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from benchmarks.overhead.urls import AtomicOrders, GuardedOrders, LookingOrders, Nothing
from benchmarks.project.models import Order, Stock
from idempotency.decorators import idempotent_view
from idempotency.policies import Policy


@csrf_exempt
@transaction.atomic
def order(request: HttpRequest) -> JsonResponse:
    """One conditional update and one insert."""
    wanted = json.loads(request.body)
    sku, amount = wanted["sku"], wanted["amount"]
    if not Stock.objects.filter(sku=sku, on_hand__gte=amount).update(on_hand=F("on_hand") - amount):
        return JsonResponse({"detail": "out of stock"}, status=409)
    made = Order.objects.create(sku=sku, amount=amount, user_id=1)
    return JsonResponse({"id": made.pk, "sku": sku, "amount": amount}, status=201)


@csrf_exempt
def nothing(request: HttpRequest) -> JsonResponse:
    """What every answer costs."""
    return JsonResponse({}, status=201)


def everybody(request: HttpRequest) -> str:
    return "everybody"


urlpatterns = [
    path("plain", order),
    path("plain/nothing", nothing),
    path("plain/guarded", csrf_exempt(idempotent_view(scope=everybody)(order))),
    path("plain/looks", csrf_exempt(idempotent_view(Policy(replay_first=True), scope=everybody)(order))),
    path("rest", AtomicOrders.as_view()),
    path("rest/nothing", Nothing.as_view()),
    path("rest/guarded", GuardedOrders.as_view()),
    path("rest/looks", LookingOrders.as_view()),
]
