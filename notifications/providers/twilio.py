"""Twilio's Programmable Messaging. https://www.twilio.com/docs/messaging/api/message-resource

It takes no key of ours and cannot be asked by one: an attempt without an answer stays unknown.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NoReturn

import httpx
from django.conf import settings

from notifications.texts import wording

from . import http
from .base import Busy, Misconfigured, NoAnswer, Rejected

BUSY: Final = (httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE)
"""https://www.twilio.com/docs/usage/twilios-response"""


class Twilio:
    """Takes words rather than a template's name."""

    is_once_by_key = False

    def __init__(self) -> None:
        account = settings.TWILIO
        self.path = f"/2010-04-01/Accounts/{account['account_sid']}/Messages.json"
        self.sender = account["from_number"]
        self.http = http.client(account["endpoint"], auth=(account["account_sid"], account["auth_token"]))

    def send(self, *, key: str, recipient: str, template: str, params: Mapping[str, str]) -> str:
        """Send a text; its number is its SID."""
        if (said := wording(template, params)) is None:
            raise Rejected(f"there are no words for {template}")
        form = {"To": recipient, "From": self.sender, "Body": said.body}
        return http.number(_answer(http.send(self.http, "POST", self.path, data=form)).get("sid"))

    def find(self, *, key: str, recipient: str, since: datetime) -> NoReturn:
        """It lists messages by number and day, but none by a key."""
        raise NoAnswer("Twilio knows no keys")

    def close(self, *, key: str) -> NoReturn:
        """There is no such thing."""
        raise NoAnswer("Twilio knows no keys")


def _answer(response: httpx.Response) -> dict[str, Any]:
    if response.status_code in BUSY:
        raise Busy(_code(response))
    if response.status_code == httpx.codes.BAD_REQUEST:
        raise Rejected(_code(response))
    if response.status_code in http.NOTHING_WAS_DONE:
        raise Misconfigured(f"status {response.status_code}")
    if response.status_code != httpx.codes.CREATED:
        raise NoAnswer(f"status {response.status_code}")
    return http.document(response)


def _code(response: httpx.Response) -> str:
    """Return Twilio's number of the error; its words repeat the recipient.

    :raises NoAnswer: when there is none: a gateway says so, which may have passed the request on.
    """
    code = http.document(response).get("code")
    if not isinstance(code, int):
        raise NoAnswer(f"status {response.status_code}, not by Twilio")
    return f"code {code}"
