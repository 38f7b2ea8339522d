"""Typical mistakes are told at once, and say what to do."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from django.views import View
from django.views.generic import ListView
from rest_framework.views import APIView
from rest_framework.viewsets import ModelViewSet

from idempotency import claims
from idempotency.decorators import idempotent, idempotent_view
from idempotency.exceptions import KeyMissing, StoreUnavailable
from idempotency.mixins import IdempotentMixin
from idempotency.models import IdempotencyRecord
from idempotency.policies import Policy
from tests.lab.leases import Shop
from tests.lab.operations import Lab, lab_db, on


@pytest.mark.parametrize(
    "options",
    [
        {"methods": "POST"},
        {"headers": "X-Foo"},
        {"ignored_fields": "sent_at"},
        {"remember": 402},
        {"retention": 3600},
        {"wait": 5},
        {"lease": 30},
    ],
)
def test_a_policy_refuses_what_would_guard_nothing(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=f"{next(iter(options))} takes a"):
        Policy(**options)


def test_a_policy_takes_what_is_right() -> None:
    Policy(methods={"post"}, headers=["X-Foo"], remember=[402], retention=None, wait=timedelta(0))  # type: ignore[arg-type]


def test_the_mixin_refuses_a_plain_view() -> None:
    class Plain(IdempotentMixin, View):  # type: ignore[misc]
        pass

    with pytest.raises(ImproperlyConfigured, match="use @idempotent_view"):
        Plain.as_view()


def test_the_mixin_refuses_to_stand_behind_the_view() -> None:
    """There no request would be guarded."""
    with pytest.raises(ImproperlyConfigured, match=r"class Behind\(IdempotentMixin, …\)"):

        class Behind(APIView, IdempotentMixin):
            pass


@pytest.mark.parametrize("base", [APIView, ModelViewSet, ListView])
def test_the_mixin_stands_before_any_view(base: Any) -> None:
    first = type("First", (IdempotentMixin, base), {})
    assert type("Second", (first,), {}).mro()[2] is IdempotentMixin


def test_the_view_decorator_asks_for_its_parentheses() -> None:
    with pytest.raises(TypeError, match="with parentheses"):
        idempotent_view(lambda request: None)  # type: ignore[arg-type]


@pytest.mark.parametrize("part", ["key", "scope", "fingerprint"])
def test_a_service_refuses_a_name_that_is_no_argument(part: str) -> None:
    with pytest.raises(TypeError, match="has no argument orderno"):
        idempotent("lab.grant", **{"key": "order_no", part: "orderno"})(lambda *, order_no: None)


@pytest.mark.parametrize(
    ("key", "arguments", "told"),
    [
        ("order_no", {"order_no": None, "line": 1}, "order_no is None"),
        ("order_no", {"order_no": "", "line": 1}, "order_no is empty"),
        (("order_no", "line"), {"order_no": None, "line": None}, "order_no, line is None"),
        (
            lambda order_no, line: order_no,
            {"order_no": None, "line": 1},
            "what computes key or scope is None",
        ),
        (lambda order_no, line: order_no, {"order_no": "", "line": 1}, "what computes the key is empty"),
    ],
)
def test_a_service_says_what_its_key_lacks(key: Any, arguments: dict[str, Any], told: str) -> None:
    service = idempotent("lab.grant", key=key)(lambda *, order_no, line: None)

    with pytest.raises(KeyMissing, match=told):
        service(**arguments)


@pytest.mark.django_db
def test_a_stranger_at_a_decorated_class_is_told_how_to_get_a_scope(rf: RequestFactory) -> None:
    @idempotent_view()
    class Plain(View):
        def post(self, request: HttpRequest) -> HttpResponse:
            raise AssertionError

    with pytest.raises(ImproperlyConfigured, match=r"Require authentication, or say whose key it is.*scope="):
        Plain.as_view()(rf.post("/", headers={"Idempotency-Key": "K"}))

    assert IdempotencyRecord.objects.count() == 0


@lab_db
@pytest.mark.parametrize("inner", ["step", "call", "heartbeat", "complete"])
def test_nothing_of_a_claim_runs_inside_a_step(lab: Lab, inner: str) -> None:
    shop = Shop(lab)
    acts = {
        "step": lambda: shop.claims[0].step("inner", lambda: lab.do("inner")),
        "call": lambda: shop.claims[0].call("inner", lambda key: lab.do("inner")),
        "heartbeat": lambda: shop.claims[0].heartbeat(),
        "complete": lambda: shop.claims[0].complete(lambda: lab.do("inner")),
    }

    with pytest.raises(ImproperlyConfigured, match="cannot run inside another step"):
        shop.pay(reserving=acts[inner])

    assert (lab.done, shop.calls) == ([], [])
    shop.pay()
    assert lab.done == ["reserved", "settled"]


@lab_db
@on("sqlite", "mariadb")
def test_a_table_that_is_missing_is_no_outage(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """ "Repeat with the same key" would help nobody."""
    monkeypatch.setattr(claims, "_look_sql", lambda dialect: "SELECT 1 FROM nowhere WHERE id = %s")

    with pytest.raises(Exception, match="nowhere") as raised:
        lab.run(policy={"replay_first": True})

    assert not isinstance(raised.value, StoreUnavailable)
    assert lab.done == []
