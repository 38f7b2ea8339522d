"""Alibaba Cloud's SMS service. https://help.aliyun.com/zh/sms/developer-reference/api-dysmsapi-2017-05-25-sendsms

Our key travels as ``OutId``, which its records tell again: so an attempt without an answer can be asked for.
It does not keep a second one with the same ``OutId`` from being sent.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any, Final, NoReturn

import httpx
from django.conf import settings

from . import http
from .acs3 import Signature
from .base import Busy, Misconfigured, NoAnswer, Rejected

VERSION: Final = "2017-05-25"
CHINA: Final = timezone(timedelta(hours=8))
PAGE: Final = 50

SKEW: Final = timedelta(minutes=1)
"""How far their clock and ours may be apart, which matters around midnight."""

BUSY: Final = frozenset(
    {
        "isv.BUSINESS_LIMIT_CONTROL",  # so many to one number a minute, an hour, a day
        "isv.AMOUNT_NOT_ENOUGH",
        "isv.OUT_OF_SERVICE",
        "isv.DAY_LIMIT_CONTROL",
    }
)
"""Nothing was sent, and the same may go well later; so do all of ``Throttling``."""

OPEN: Final = ("isp.", "InternalError")
"""The service's own failures: it may have been sent."""

DENIED: Final = "isp.RAM_PERMISSION_DENY"
"""Definite all the same."""


class Aliyun:
    """Signed requests (ACS3-HMAC-SHA256) to one endpoint."""

    is_once_by_key = False

    def __init__(self) -> None:
        account = settings.ALIYUN_SMS
        self.sign_name = account["sign_name"]
        self.signature = Signature(
            key_id=account["access_key_id"], secret=account["access_key_secret"], version=VERSION
        )
        self.http = http.client(account["endpoint"])

    def send(self, *, key: str, recipient: str, template: str, params: Mapping[str, str]) -> str:
        """Send a text; its number is the ``BizId``."""
        answer = self._ask(
            "SendSms",
            PhoneNumbers=_number(recipient),
            SignName=self.sign_name,
            TemplateCode=template,
            TemplateParam=json.dumps(dict(params), ensure_ascii=False),
            OutId=key,
        )
        return http.number(answer.get("BizId"))

    def find(self, *, key: str, recipient: str, since: datetime) -> str | None:
        """Look through what this number was sent on that day and the next.

        What is not listed may still come.
        """
        for day in days(since, now=datetime.now(UTC)):
            if any(detail.get("OutId") == key for detail in self._sent(recipient, day)):
                return key
        return None

    def close(self, *, key: str) -> NoReturn:
        """There is no such thing."""
        raise NoAnswer("Alibaba Cloud cannot close a key")

    def _sent(self, recipient: str, day: date) -> Iterator[dict[str, Any]]:
        for page in range(1, 100):
            details = self._page(recipient, day, page)
            yield from details
            if len(details) < PAGE:
                return

    def _page(self, recipient: str, day: date, page: int) -> list[dict[str, Any]]:
        try:
            answer = self._ask(
                "QuerySendDetails",
                PhoneNumber=_number(recipient),
                SendDate=day.strftime("%Y%m%d"),
                PageSize=str(PAGE),
                CurrentPage=str(page),
            )
        except Misconfigured:
            raise  # somebody must act
        except (Rejected, Busy) as error:  # the question, not the message
            raise NoAnswer(f"cannot be asked: {error}") from error
        return _details(answer)

    def _ask(self, action: str, **query: str) -> dict[str, Any]:
        host = self.http.base_url.netloc.decode()
        headers = self.signature.headers(action=action, host=host, query=query)
        return _answer(http.send(self.http, "POST", "/", params=query, headers=headers))


def days(since: datetime, *, now: datetime) -> list[date]:
    """Return the days, which are China's, on which an attempt of this time may be listed."""
    first = (since - SKEW).astimezone(CHINA).date()
    last = (min(since + timedelta(days=1), now)).astimezone(CHINA).date()
    return [first + timedelta(days=number) for number in range(max((last - first).days, 0) + 1)]


def _details(answer: dict[str, Any]) -> list[dict[str, Any]]:
    match answer:
        case {"SmsSendDetailDTOs": {"SmsSendDetailDTO": [*details]}}:
            if all(isinstance(detail, dict) for detail in details):
                return details
    raise NoAnswer("an answer without a list")


def _number(recipient: str) -> str:
    """Spell a number as the service does: one of the mainland without its country."""
    return recipient.removeprefix("+86") if recipient.startswith("+86") else recipient.replace("+", "00", 1)


def _answer(response: httpx.Response) -> dict[str, Any]:
    if response.is_server_error:
        raise NoAnswer(f"status {response.status_code}")
    answer = http.document(response)
    code = http.code(answer.get("Code"))
    if code == "OK":
        return answer
    if code in BUSY or code.startswith("Throttling"):
        raise Busy(code)
    if code.startswith("isv."):
        raise Rejected(code)
    if code == DENIED or (response.status_code in http.NOTHING_WAS_DONE and not code.startswith(OPEN)):
        raise Misconfigured(code)
    raise NoAnswer(code)
