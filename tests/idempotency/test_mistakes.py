"""Typical mistakes are told at once, and say what to do."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.views import View

from idempotency import claims
from idempotency.decorators import idempotent, idempotent_view
from idempotency.exceptions import StoreUnavailable
from idempotency.mixins import IdempotentMixin
from idempotency.policies import Policy
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


def test_the_view_decorator_asks_for_its_parentheses() -> None:
    with pytest.raises(TypeError, match="with parentheses"):
        idempotent_view(lambda request: None)  # type: ignore[arg-type]


@pytest.mark.parametrize("part", ["key", "scope", "fingerprint"])
def test_a_service_refuses_a_name_that_is_no_argument(part: str) -> None:
    with pytest.raises(TypeError, match="has no argument orderno"):
        idempotent("lab.grant", **{"key": "order_no", part: "orderno"})(lambda *, order_no: None)


@lab_db
@on("sqlite", "mariadb")
def test_a_table_that_is_missing_is_no_outage(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """ "Repeat with the same key" would help nobody."""
    monkeypatch.setattr(claims, "_look_sql", lambda dialect: "SELECT 1 FROM nowhere WHERE id = %s")

    with pytest.raises(Exception, match="nowhere") as raised:
        lab.run(policy={"replay_first": True})

    assert not isinstance(raised.value, StoreUnavailable)
    assert lab.done == []
