"""A sender that hands a message over and stands at the test's gate: it is sent, and not yet marked."""

import os

from idempotency import celery
from idempotency.relaying import Envelope
from tests.lab.tasks import hold


def send(message: Envelope) -> None:
    celery.send(message)
    hold(int(os.environ["TEST_GATE"]))
