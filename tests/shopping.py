"""Factories for the shop: who buys, what is sold, what a request looks like."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any
from uuid import uuid4

import httpx
from django.contrib.auth import get_user_model
from rest_framework.authtoken.models import Token
from rest_framework.test import APIClient

from orders.models import Article, Order, OrderLine
from stock.models import StockItem, StockMovement


def sell(*, sku: str = "TEA-100", price_minor: int = 1990, currency: str = "CNY", stock: int = 100) -> None:
    Article.objects.create(sku=sku, name=sku, price_minor=price_minor, currency=currency)
    StockItem.objects.recount(sku=sku, on_hand=stock)


def shopper(name: str = "alice", **flags: Any) -> APIClient:
    user, _created = get_user_model().objects.get_or_create(username=name, defaults=flags)
    token, _created = Token.objects.get_or_create(user=user)
    return APIClient(headers={"Authorization": f"Token {token.key}"})


def request_body(*lines: tuple[str, Any], **members: Any) -> dict[str, Any]:
    wanted = [{"sku": sku, "quantity": quantity} for sku, quantity in lines or [("TEA-100", 2)]]
    return {"cart_id": "67890", "currency": "CNY", "lines": wanted, **members}


def order(client: APIClient, *lines: tuple[str, Any], key: str | None = None, **members: Any) -> Any:
    """POST an order, under a fresh key unless ``key`` says otherwise; ``key=""`` sends none."""
    headers = {} if key == "" else {"Idempotency-Key": key or str(uuid4())}
    return client.post("/api/orders", request_body(*lines, **members), headers=headers)


def on_hand(sku: str = "TEA-100") -> int:
    return StockItem.objects.get(sku=sku).on_hand


def counts() -> dict[str, int]:
    """What a refusal must not change."""
    return {model.__name__: model.objects.count() for model in (Order, OrderLine, StockMovement)}


def at_once(number: int, act: Callable[[int], Any]) -> list[Any]:
    """Call ``act(0)``, ``act(1)``, … in threads that a barrier starts in the same moment."""
    barrier = Barrier(number)

    def wait_and_act(index: int) -> Any:
        barrier.wait(30)
        return act(index)

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(wait_and_act, range(number)))


def http_client(url: str) -> httpx.Client:
    return httpx.Client(
        base_url=url, headers={"Authorization": "Token demo-alice"}, timeout=60, trust_env=False
    )
