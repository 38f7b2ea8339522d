"""Charges and refunds, as a payment provider answers them."""

from dataclasses import dataclass, field
from typing import Any

from .faults import BadRequest, after, before, is_declined
from .notifying import Notifier
from .rules import Rules
from .store import Refused, Store


@dataclass
class Payments:
    """Every payment provider at once."""

    store: Store
    rules: Rules
    notifier: Notifier = field(default_factory=Notifier)

    def charge(self, *, provider: str, key: str, order_no: str, **money: Any) -> dict[str, Any]:
        """Charge, or go wrong as the rules say."""
        check_money(money)
        rule = self.rules.take(call="charge", order=order_no, provider=provider)
        before(rule)
        charge, is_new = self.store.charge(
            provider=provider, key=key, order_no=order_no, decline=is_declined(rule), **money
        )
        if is_new:
            self.notifier.tell(charge)
        after(rule)
        return {"charge": charge}

    def find(self, *, provider: str, key: str) -> dict[str, Any]:
        """Tell what is known of a key."""
        rule = self.rules.take(call="find", order=None, provider=provider)
        before(rule)
        return {"charge": self.store.find(provider=provider, key=key)}

    def close(self, *, provider: str, key: str) -> dict[str, Any]:
        """Let nothing be charged under a key any more."""
        rule = self.rules.take(call="close", order=None, provider=provider)
        before(rule)
        charge = self.store.close(provider=provider, key=key)
        after(rule)
        return {"charge": charge}

    def refund(self, *, provider: str, payment_no: str, number: str, **money: Any) -> dict[str, Any]:
        """Give money back, or go wrong as the rules say."""
        check_money(money)
        rule = self.rules.take(call="refund", order=self._charge(payment_no)["order_no"], provider=provider)
        before(rule)
        refund_no = self.store.refund(
            provider=provider, payment_no=payment_no, number=number, decline=is_declined(rule), **money
        )
        self.notifier.tell(self._charge(payment_no), "refunded")
        after(rule)
        return {"refund_no": refund_no}

    def _charge(self, payment_no: str) -> dict[str, Any]:
        """:raises Refused: when nothing was charged under this number."""
        for charge in self.store.charges():
            if charge["payment_no"] == payment_no:
                return charge
        raise Refused("unknown")

    def charges(self, *, order: str | None = None) -> list[dict[str, Any]]:
        """List what was charged."""
        return self.store.charges(order_no=order)

    def plan(self, **members: Any) -> dict[str, Any]:
        """Say to whom, how often and how late charges are told."""
        if not members.keys() <= {"url", "copies", "seconds"}:
            raise BadRequest("url, copies or seconds")
        vars(self.notifier).update(members)
        return {}

    def notify(self, *, order: str, kinds: list[str], at_once: bool = False) -> list[dict[str, Any]]:
        """Send notices of the order's charge now."""
        charges = self.store.charges(order_no=order)
        if not charges:
            raise BadRequest("nothing was charged for this order")
        try:
            return self.notifier.send(charges[-1], kinds, at_once=at_once)
        except ValueError as error:
            raise BadRequest(str(error)) from error


def check_money(money: dict[str, Any]) -> None:
    """:raises BadRequest: when the amount is no whole number of minor units above zero."""
    amount = money.get("amount_minor")
    if type(amount) is not int or amount < 1:
        raise BadRequest("amount_minor is a whole number of minor units")
