from collections.abc import Iterator
from typing import Any

import pytest

from idempotency.signals import refused
from orders.models import Order

from . import senders, shop


@pytest.fixture(autouse=True)
def configured(settings: Any) -> dict[str, Any]:
    """The shop knows the providers' keys; a test may change what it knows."""
    settings.PAYMENTS_CALLBACKS = senders.configuration()
    return settings.PAYMENTS_CALLBACKS


@pytest.fixture
def stripe() -> senders.Stripe:
    return senders.Stripe()


@pytest.fixture
def alipay() -> senders.Alipay:
    return senders.Alipay()


@pytest.fixture
def wechat() -> senders.WeChat:
    return senders.WeChat()


@pytest.fixture
def order(db: None) -> Order:
    """SO-2024-0001, 39.80 CNY."""
    return shop.place()


@pytest.fixture
def order_in_dollars(db: None) -> Order:
    """SO-2024-0001, 39.80 USD."""
    return shop.place(currency="USD")


@pytest.fixture
def heard() -> Iterator[list[tuple[Any, ...]]]:
    """What the signal of refusals told."""
    events: list[tuple[Any, ...]] = []

    def hear(*, operation: Any, reason: str, **kwargs: Any) -> None:
        events.append(("refused", operation, reason))

    refused.connect(hear)
    yield events
    refused.disconnect(hear)
