"""The sandbox, which plays every provider of the shop: a process of its own, asked over HTTP."""

from datetime import datetime
from functools import partial
from typing import Any, Final

import httpx
from django.conf import settings

from shop import exchanges

from .base import Charge, Declined, NoAnswer, Unreachable

NOTHING_WAS_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)

PERHAPS_PASSED_ON: Final = frozenset({408, 409, 425, 429, 499})
"""A gateway may say so that has passed the request on."""


class Sandbox:
    """One of the providers that it plays."""

    def __init__(self, name: str) -> None:
        # No retries and no connection that was used before: whether something was sent is never in doubt.
        self.http = httpx.Client(
            base_url=f"{settings.SANDBOX_URL}/{name}",
            timeout=httpx.Timeout(
                settings.PAYMENTS_READ_TIMEOUT.total_seconds(),
                connect=settings.PAYMENTS_CONNECT_TIMEOUT.total_seconds(),
            ),
            limits=httpx.Limits(max_keepalive_connections=0),
            headers={"Accept-Encoding": "identity"},
            trust_env=False,
        )

    def charge(self, *, key: str, order_no: str, amount_minor: int, currency: str) -> Charge:
        """Take the money, once for each ``key``."""
        money = {"amount_minor": amount_minor, "currency": currency}
        answer = self._send("POST", "/charges", json={"key": key, "order_no": order_no, **money})
        return _charge(answer.get("charge"))

    def find(self, *, key: str) -> Charge | None:
        """Return what was charged under ``key``."""
        return _charge_or_none(self._send("GET", f"/charges/{key}"))

    def close(self, *, key: str) -> Charge | None:
        """See to it that nothing is charged under ``key`` any more."""
        return _charge_or_none(self._send("POST", f"/charges/{key}/close"))

    def refund(self, *, payment_no: str, number: str, amount_minor: int, currency: str) -> str:
        """Give money back, once for each ``number``."""
        money = {"amount_minor": amount_minor, "currency": currency}
        answer = self._send("POST", "/refunds", json={"payment_no": payment_no, "number": number, **money})
        if not isinstance(answer.get("refund_no"), str):
            raise NoAnswer("no refund")
        return answer["refund_no"]

    def _send(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        within = settings.PAYMENTS_CONNECT_TIMEOUT + settings.PAYMENTS_READ_TIMEOUT
        try:
            response = exchanges.exchange(self.http, method, path, within=within, **content)
        except NOTHING_WAS_SENT as error:
            raise Unreachable(str(error)) from error
        except httpx.RequestError as error:
            raise NoAnswer(repr(error)) from error
        return _answer(response)


def _answer(response: httpx.Response) -> dict[str, Any]:
    """Return the document of a 200; a 402 is the provider's no."""
    if response.status_code == httpx.codes.PAYMENT_REQUIRED:
        raise Declined(response.text)
    if exchanges.is_turned_away(response):
        raise Unreachable("too many requests")
    if response.is_client_error and response.status_code not in PERHAPS_PASSED_ON:
        response.raise_for_status()  # our mistake: somebody must change code
    if response.status_code != httpx.codes.OK:
        raise NoAnswer(f"status {response.status_code}")
    try:
        return exchanges.json_object(response)
    except ValueError as error:
        raise NoAnswer("no JSON object") from error


def _charge_or_none(answer: dict[str, Any]) -> Charge | None:
    return None if answer.get("charge", ...) is None else _charge(answer.get("charge"))


def _charge(document: Any) -> Charge:
    try:
        return Charge(
            payment_no=document["payment_no"],
            amount_minor=document["amount_minor"],
            currency=document["currency"],
            paid_at=datetime.fromisoformat(document["paid_at"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise NoAnswer("no charge") from error


alipay = partial(Sandbox, "alipay")
wechat = partial(Sandbox, "wechat")
stripe = partial(Sandbox, "stripe")
