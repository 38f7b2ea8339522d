"""The commands of the start page, to be pasted into a terminal."""

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _

UNKNOWN_ORDER: Final = "ORD…"
"""Stands where a visitor's own order number goes."""

ORDER_NO: Final = re.compile(r"ORD[0-9]{8}-[0-9A-Z]{10}")


SNIPPET: Final = """\
from idempotency.mixins import IdempotentMixin

class OrderViewSet(IdempotentMixin, viewsets.ModelViewSet):
    …"""


@dataclass(frozen=True, kw_only=True)
class Command:
    """One thing to try."""

    name: str
    """Its anchor."""

    title: str
    text: str
    code: str

    answers: tuple[tuple[int, str], ...]
    """Statuses that come back, and when."""


def commands(*, api: str, key: str, order_no: str) -> list[Command]:
    """Return what can be tried, in order. ``order_no`` is a visitor's; what is none is not shown."""
    order = f"{api}/orders/{order_no if ORDER_NO.fullmatch(order_no) else UNKNOWN_ORDER}"
    return [
        Command(
            name="create",
            title=_("Create an order"),
            text=_("Paste it twice. The second answer is the first order again, and says isDuplicate."),
            code=_curl(f"{api}/orders", _cart(2), key=key),
            answers=((201, _("the first time")), (200, _("each further time"))),
        ),
        Command(
            name="other",
            title=_("Use its key for something else"),
            text=_("The same key with another quantity is refused, and nothing changes."),
            code=_curl(f"{api}/orders", _cart(3), key=key),
            answers=((422, "idempotency_key_reused"),),
        ),
        Command(
            name="stock",
            title=_("Look at the stock"),
            text=_("However often the order was sent, two pieces are gone."),
            code=_curl(f"{api}/stock/TEA-100"),
            answers=((200, _("remaining: 98")),),
        ),
        Command(
            name="pay",
            title=_("Pay"),
            text=_("Twice, or by another method the second time: the buyer is charged once."),
            code=_curl(f"{order}/pay", {"method": "wechat"}),
            answers=((200, _("paid; isDuplicate from the second time on")),),
        ),
        Command(
            name="refund",
            title=_("Give money back"),
            text=_("Once for each refund number. The same number with another amount is refused."),
            code=_curl(f"{order}/refunds", {"refund_no": "R1", "amount": "10.00"}),
            answers=((201, _("the first time")), (200, _("each further time")), (422, _("another amount"))),
        ),
        Command(
            name="cancel",
            title=_("Cancel"),
            text=_("For an order that is not paid: its stock comes back once. A paid one stays as it is."),
            code=_curl(f"{order}/cancel", post=True),
            answers=((200, _("cancelled")), (409, _("paid before"))),
        ),
        Command(
            name="text",
            title=_("Send a verification code"),
            text=_("Once a minute, however often the button is pressed."),
            code=_curl(
                f"{api}/sms", {"phone": "13800138000", "template": "login_code", "kind": "verification"}
            ),
            answers=((200, _("isDuplicate within the minute")),),
        ),
    ]


def _cart(quantity: int) -> dict[str, Any]:
    return {"cart_id": "67890", "currency": "CNY", "lines": [{"sku": "TEA-100", "quantity": quantity}]}


def _curl(address: str, body: dict[str, Any] | None = None, *, key: str = "", post: bool = False) -> str:
    parts = [f"curl -i {'-X POST ' if post else ''}{address}", "-H 'Authorization: Token demo-alice'"]
    if key:
        parts.append(f"-H 'Idempotency-Key: {key}'")
    if body:
        parts += ["-H 'Content-Type: application/json'", f"-d '{json.dumps(body)}'"]
    return " \\\n  ".join(parts)
