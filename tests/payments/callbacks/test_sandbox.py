"""The shop understands what the sandbox sends."""

import pytest
from django.test import Client

from sandbox import notices, secrets

from .shop import State, fates, place, state

pytestmark = pytest.mark.django_db

PROVIDERS = ["alipay", "wechat", "stripe"]
CHARGE = {
    "payment_no": "P-1",
    "order_no": "SO-2024-0001",
    "amount_minor": 3980,
    "currency": "CNY",
    "paid_at": "2024-11-04T06:00:05+00:00",
    "refunds": [],
}
REFUNDED = CHARGE | {
    "refunds": [
        {"number": "SO-2024-0001-R1", "refund_no": "r1", "amount_minor": 1000},
        {"number": "SO-2024-0001-R2", "refund_no": "r2", "amount_minor": 2980},
    ]
}


@pytest.fixture
def made(configured):
    made = secrets.new_secrets()
    configured["alipay"]["public_keys"] = [made["alipay"]["public"]]
    configured["stripe"] = {"secrets": [made["stripe"]["secret"]], "livemode": False}
    wechat = made["wechat"]
    configured["wechat"] |= {
        "platform_keys": {secrets.SERIAL: wechat["public"]},
        "api_keys": [wechat["api_key"]],
    }
    return made


def tell(provider, kind, charge, made):
    body, headers = notices.MAKERS[provider](kind, charge, made[provider])
    path = f"/api/payments/callbacks/{provider}"
    return Client().post(path, body, content_type=headers.pop("Content-Type"), headers=headers)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_payment_and_its_refunds(provider, made):
    place()
    partly = REFUNDED | {"refunds": REFUNDED["refunds"][:1]}
    told = [
        ("failed", CHARGE),
        ("paid", CHARGE),
        ("refunded", partly),
        ("paid", CHARGE),
        ("refunded", REFUNDED),
    ]
    answers = [tell(provider, kind, charge, made) for kind, charge in told]

    assert {answer.status_code for answer in answers} <= {200, 204}
    assert state() == State(
        status="REFUNDED", paid=3980, payments=("P-1",), refunded=3980, refunds=(1000, 2980), stock=100
    )
    assert not {"MISMATCHED", "UNMATCHED", "FOREIGN", "PARKED"} & set(fates())
