"""A process that changes something, publishes it, and dies: ``before`` or ``after`` the commit."""

import os
import signal
import sys

import django


def main(moment: str) -> None:
    django.setup()
    from django.db import transaction

    from idempotency.outbox import publish
    from tests.lab.models import Effect

    with transaction.atomic():
        if moment == "after":
            transaction.on_commit(die)  # ahead of the attempt that publish() registers
        Effect.objects.create(name="changed")
        publish("lab.happened", {"number": 1})
        if moment == "before":
            die()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1])
