"""Texts, as a provider of SMS takes them: each once by its key. What was sent is only listed."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from .faults import after, before, is_declined
from .rules import Rules
from .store import Refused, Store

ONE = "SELECT * FROM message WHERE key = ?"


class Rejected(Refused):
    """No text is sent under this key, now or later."""

    status = 422


@dataclass
class Texts:
    """The provider of texts."""

    store: Store
    rules: Rules

    def send(self, *, key: str, phone: str, template: str, **params: Any) -> dict[str, Any]:
        """Send once for each key, or go wrong as the rules say."""
        rule = self.rules.take(call="message", phone=phone, provider="sms")
        before(rule)
        message = self._send(key, phone, template, params, state="declined" if is_declined(rule) else "sent")
        after(rule)
        return {"message": message}

    def find(self, *, key: str) -> dict[str, Any]:
        """Tell what is known of a key."""
        before(self.rules.take(call="find", provider="sms"))
        with self.store.lock:
            message = self.store.one(ONE, [key])
        return {"message": _sent(message) if message else None}

    def close(self, *, key: str) -> dict[str, Any]:
        """Let nothing be sent under a key any more."""
        rule = self.rules.take(call="close", provider="sms")
        before(rule)
        with self.store.writing() as execute:
            execute("INSERT INTO message (key, state) VALUES (?, 'closed') ON CONFLICT DO NOTHING", [key])
            message = self.store.one(ONE, [key])
        after(rule)
        return {"message": _shown(message) if message and message["state"] == "sent" else None}

    def messages(self, *, phone: str | None = None) -> list[dict[str, Any]]:
        """List what was sent."""
        sql = "SELECT * FROM message WHERE state = 'sent' AND coalesce(phone = ?, 1) ORDER BY rowid"
        with self.store.lock:
            return [_shown(message) for message in self.store.all(sql, [phone])]

    def _send(self, key: str, phone: str, template: str, params: Any, *, state: str) -> dict[str, Any]:
        values = [key, f"sms_{uuid4().hex[:20]}", phone, template, json.dumps(params), state]
        with self.store.writing() as execute:
            execute(
                "INSERT INTO message VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING",
                [*values, datetime.now(UTC).isoformat()],
            )
            message = self.store.one(ONE, [key])
        return _sent(message)


def _sent(message: dict[str, Any] | None) -> dict[str, Any]:
    if message is None or message["state"] != "sent":
        raise Rejected("unknown" if message is None else message["state"])
    return _shown(message)


def _shown(message: dict[str, Any]) -> dict[str, Any]:
    return {**message, "params": json.loads(message["params"])}
