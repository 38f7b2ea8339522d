"""What is sent in these tests, and what is left of it."""

import json
from typing import Any

from django.db.models import F

from idempotency.models import IdempotencyRecord
from notifications.models import Message, MessageStatus, Window


def post(client: Any, phone: Any, **members: Any) -> Any:
    body = {"phone": phone, "template": "LOGIN", "kind": "verification", **members}
    content = json.dumps({name: value for name, value in body.items() if value is not ...})
    return client.generic("POST", "/api/sms", content, content_type="application/json")


def statuses() -> list[str]:
    return list(Message.objects.order_by("pk").values_list("status", flat=True))


def unfinished() -> int:
    return IdempotencyRecord.objects.filter(operation="notifications.send", completed_at=None).count()


def turn_back(delta: Any) -> None:
    """Let every window and message be older, as if so much time had passed."""
    Window.objects.update(opened_at=F("opened_at") - delta, ends_at=F("ends_at") - delta)
    Message.objects.update(
        created_at=F("created_at") - delta,
        attempted_at=F("attempted_at") - delta,
        sent_at=F("sent_at") - delta,
    )


def end_leases() -> None:
    """Do what the end of a dead process's lease does."""
    IdempotencyRecord.objects.filter(completed_at=None).update(leased_until="2020-01-01T00:00:00Z")


SENT, FAILED = MessageStatus.SENT.value, MessageStatus.FAILED.value
SENDING, UNKNOWN = MessageStatus.SENDING.value, MessageStatus.UNKNOWN.value
