"""A leased operation that charges at a pretended provider, on any database."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.utils import timezone

from idempotency import leased
from idempotency.leased import Claim
from idempotency.policies import Policy
from idempotency.values import Outcome, Run

from .operations import Lab

LEASE = timedelta(minutes=5)


class Shop:
    """Reserves, charges and settles; a test says what happens in between."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.calls: list[str] = []
        self.claims: list[Claim] = []

    def pay(
        self, *, lease: timedelta = LEASE, wait: timedelta = timedelta(0), **points: Callable[[], Any]
    ) -> Run:
        """Pay once; ``points`` are called in the reserve, the charge, the settle, and after the charge."""

        def handler(claim: Claim) -> tuple[None, Outcome | None]:
            self.claims.append(claim)
            claim.step("reserve", lambda: self._do("reserved", points.get("reserving")))
            claim.call("charge", lambda key: self._charge(key, points.get("charging")))
            points.get("charged", lambda: None)()
            claim.complete(lambda: self._do("settled", points.get("settling")))
            return None, claim.outcome

        policy = Policy(using=self.lab.database, lease=lease, wait=wait, retention=None)
        return leased.run(self.lab.operation(), handler, policy=policy)

    def end_lease(self) -> None:
        """Let the lease of whoever holds it have ended."""
        self.lab.records.update(leased_until=timezone.now() - timedelta(seconds=1))

    def _do(self, name: str, then: Callable[[], Any] | None) -> str:
        self.lab.do(name)
        if then:
            then()
        return name

    def _charge(self, key: str, then: Callable[[], Any] | None) -> str:
        self.calls.append(key)
        if then:
            then()
        return "charged"
