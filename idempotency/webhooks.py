"""Callbacks of other systems: verified, handled once by the sender's number, committed, then acknowledged.

raw request
   │ get_event()
   ├─ InvalidSignature ──► 401, MalformedEvent ──► 400: nothing is stored, the number stays free
   ▼
 claim ──known number──► the first answer
   │  └─a rival is handling it──► 409 + Retry-After: the sender comes again
   ▼
 handle() ──raised──► all rolled back; an error, so that the sender comes again
   │
 Ack or Refuse, kept with what was written in one commit ──► acknowledge() or refuse()
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from math import ceil
from typing import Any, ClassVar

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views import View
from django.views.decorators.csrf import csrf_exempt

from . import answers, engine, fingerprints, http, keys, signals
from .exceptions import IdempotencyError, KeyInvalid, KeyReused, OperationInProgress, RetryLater
from .policies import Policy
from .values import Operation, Outcome, Run

logger = logging.getLogger("idempotency")


class InvalidSignature(Exception):
    """The request is not from whom it claims to be, or too old. The message is for the log alone."""

    code = "invalid_signature"


class MalformedEvent(Exception):
    """The signature is right, but this is no event: its number is missing, say."""

    code = "malformed_event"


@dataclass(frozen=True, kw_only=True)
class WebhookEvent:
    """What a sender tells, verified."""

    id: str
    """The sender's own number of the event: the same one in each repeat."""

    type: str = ""
    """What kind of event it is, in the sender's words."""

    data: Mapping[str, Any] = field(default_factory=dict)
    """Its content, plain data."""


@dataclass(frozen=True)
class Ack:
    """The event is taken: the sender need not come again."""


@dataclass(frozen=True)
class Refuse:
    """The event is not taken, and never will be: each repeat gets the same refusal, unhandled."""

    reason: str
    """A stable name; the answer may show it to the sender."""

    status: int = HTTPStatus.BAD_REQUEST


class WebhookView(View):
    """Takes the callbacks of one sender.

    Each event number is handled once and for ever, however often and by whatever process it is received: the
    handler's writes and its answer are committed together before the answer is sent, and each repeat gets
    that answer. Other content under a known number changes nothing; it is logged, and counted as refused.
    Needs no session and no CSRF token, and stays outside ATOMIC_REQUESTS: the transaction is its own.
    """

    http_method_names = ["post"]

    sender: ClassVar[str]
    """A stable name such as ``stripe``: the operation is ``webhooks.stripe``, which is stored data."""

    using: ClassVar[str | None] = None
    """The database of both the handler's writes and the record; by default ``IDEMPOTENCY_DATABASE``."""

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        """Return the view, exempt from CSRF and from ATOMIC_REQUESTS."""
        view = csrf_exempt(super().as_view(**initkwargs))
        return transaction.non_atomic_requests(using=engine.database(cls._policy()))(view)

    def get_event(self, request: HttpRequest) -> WebhookEvent:
        """Verify the raw bytes (``request.body``), and return what they say. Store nothing here.

        :raises InvalidSignature: when they are not the sender's, too old, or there is no secret to check by.
        :raises MalformedEvent: when they are the sender's and say nothing that can be understood.
        """
        raise NotImplementedError

    def handle(self, event: WebhookEvent) -> Ack | Refuse | None:
        """Do what the event asks for, in the transaction that keeps the answer; ``None`` is :class:`Ack`.

        Raise, and all is rolled back and the sender comes again. The sender waits seconds: work in this
        database only, and let others do what is slow after the commit.
        """
        raise NotImplementedError

    def acknowledge(self) -> HttpResponse:
        """Answer so that the sender does not come again."""
        return HttpResponse(content_type="text/plain")

    def refuse(self, refusal: Refuse) -> HttpResponse:
        """Answer so that the sender knows that the event is not taken."""
        return HttpResponse(refusal.reason, status=refusal.status, content_type="text/plain")

    def get_fingerprint(self, event: WebhookEvent) -> bytes | None:
        """Return a digest of what a repeat has in common with the first; ``None`` compares nothing."""
        return fingerprints.of_value(dict(event.data))

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Take one callback."""
        try:
            event = self.get_event(request)
            keys.check(event.id)
        except InvalidSignature as error:
            return self._refused(error, HTTPStatus.UNAUTHORIZED)
        except (MalformedEvent, KeyInvalid) as error:
            return self._refused(error, HTTPStatus.BAD_REQUEST)
        try:
            run = self._once(event)
        except RetryLater as error:
            return self._later(error)
        return http.mark_replayed(answers.replay(run.outcome)) if run.replayed else run.value  # type: ignore[arg-type]

    @classmethod
    def _policy(cls) -> Policy:
        return Policy(retention=None, using=cls.using)

    def _once(self, event: WebhookEvent) -> Run:
        operation = Operation(
            name=f"webhooks.{self.sender}", scope="", key=event.id, fingerprint=self.get_fingerprint(event)
        )
        handler = partial(self._handle, event)
        try:
            return engine.run(operation, handler, policy=self._policy())
        except KeyReused:
            logger.warning("other content under a known number, not handled: %s", str(operation))
            return engine.run(replace(operation, fingerprint=None), handler, policy=self._policy())

    def _handle(self, event: WebhookEvent) -> tuple[HttpResponse, Outcome]:
        answer = self.handle(event)
        response = self.refuse(answer) if isinstance(answer, Refuse) else self.acknowledge()
        headers = tuple(item for item in response.items() if item[0].lower() in answers.KEPT_HEADERS)
        return response, Outcome(status=response.status_code, headers=headers, body=response.content)

    def _refused(
        self, error: InvalidSignature | MalformedEvent | IdempotencyError, status: HTTPStatus
    ) -> HttpResponse:
        logger.info("refused a callback of %s, %s: %s", self.sender, error.code, error)
        signals.refused.send_robust(sender=type(self), reason=error.code, operation=None)
        return self.refuse(Refuse(error.code, status))

    def _later(self, error: RetryLater) -> HttpResponse:
        running = isinstance(error, OperationInProgress)
        status = HTTPStatus.CONFLICT if running else HTTPStatus.SERVICE_UNAVAILABLE
        response = self.refuse(Refuse(error.code, status))
        response["Retry-After"] = str(max(1, ceil(error.retry_after.total_seconds())))
        return response
