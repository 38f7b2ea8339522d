"""What is to run from time to time, as Celery tasks; without Celery the commands of the same name do it.

Two that run at once, or one that is started twice, do no harm: relays claim what they send, and purges leave
alone what a rival holds.
"""

from celery import shared_task

from . import purging, relaying


@shared_task(name="idempotency.relay", ignore_result=True)  # type: ignore[untyped-decorator]
def relay() -> None:
    """Send what is due in the outbox, until nothing is or the broker is away."""
    while True:
        relayed = relaying.relay()
        if not relayed.claimed or not relayed.is_broker_available:
            return


@shared_task(name="idempotency.purge", ignore_result=True)  # type: ignore[untyped-decorator]
def purge() -> None:
    """Delete what has expired."""
    purging.purge()
