"""Alibaba Cloud's SMS service. https://help.aliyun.com/zh/sms/developer-reference/api-dysmsapi-2017-05-25-sendsms

Our key travels as ``OutId``, which its records tell again: so an attempt without an answer can be asked for.
It does not keep a second one with the same ``OutId`` from being sent.
"""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, Final, NoReturn

import httpx
from django.conf import settings

from . import http
from .acs3 import Signature
from .base import Busy, Misconfigured, NoAnswer, Rejected

VERSION: Final = "2017-05-25"
CHINA: Final = timezone(timedelta(hours=8))
PAGE: Final = 50

BUSY: Final = frozenset(
    {
        "isv.BUSINESS_LIMIT_CONTROL",  # so many to one number a minute, an hour, a day
        "isv.AMOUNT_NOT_ENOUGH",
        "isv.OUT_OF_SERVICE",
        "isv.DAY_LIMIT_CONTROL",
        "Throttling",
        "Throttling.User",
        "Throttling.Api",
    }
)
"""Nothing was sent, and the same may go well later."""

DOUBT: Final = frozenset({"isp.SYSTEM_ERROR", "isp.GATEWAY_EXCEPTION", "InternalError"})


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
        return str(answer["BizId"])

    def find(self, *, key: str, recipient: str, since: datetime) -> str | None:
        """Look through what this number was sent on the day; what it does not list may still come."""
        for page in range(1, 100):
            answer = self._ask(
                "QuerySendDetails",
                PhoneNumber=_number(recipient),
                SendDate=since.astimezone(CHINA).strftime("%Y%m%d"),
                PageSize=str(PAGE),
                CurrentPage=str(page),
            )
            details = answer.get("SmsSendDetailDTOs", {}).get("SmsSendDetailDTO", [])
            if any(detail.get("OutId") == key for detail in details):
                return key
            if len(details) < PAGE:
                break
        return None

    def close(self, *, key: str) -> NoReturn:
        """There is no such thing."""
        raise NoAnswer("Alibaba Cloud cannot close a key")

    def _ask(self, action: str, **query: str) -> dict[str, Any]:
        host = self.http.base_url.netloc.decode()
        headers = self.signature.headers(action=action, host=host, query=query)
        return _answer(http.send(self.http, "POST", "/", params=query, headers=headers))


def _number(recipient: str) -> str:
    """Spell a number as the service does: one of the mainland without its country."""
    return recipient.removeprefix("+86") if recipient.startswith("+86") else recipient.replace("+", "00", 1)


def _answer(response: httpx.Response) -> dict[str, Any]:
    if response.is_server_error:
        raise NoAnswer(f"status {response.status_code}")
    answer = http.document(response)
    code = str(answer.get("Code"))
    if code == "OK":
        return answer
    if code in BUSY:
        raise Busy(code)
    if code in DOUBT:
        raise NoAnswer(code)
    if code.startswith("isv."):
        raise Rejected(code)
    raise Misconfigured(code)
