"""One log line for each thing that happened, with the key's first characters only."""

import logging
from typing import Any

from django.dispatch import receiver

from .signals import executed, refused, replayed
from .values import Operation, Outcome

logger = logging.getLogger("idempotency")

# A record's arguments are texts: error reporters take the repr of others, which holds the whole key.


@receiver(executed)
def log_executed(*, operation: Operation, outcome: Outcome, expired: bool, **kwargs: Any) -> None:
    logger.info("executed %s", str(operation), extra=_extra(operation))
    if expired:
        logger.warning(
            "executed again %s: its earlier outcome had expired", str(operation), extra=_extra(operation)
        )


@receiver(replayed)
def log_replayed(*, operation: Operation, outcome: Outcome, **kwargs: Any) -> None:
    logger.info("replayed %s", str(operation), extra=_extra(operation))


@receiver(refused)
def log_refused(*, operation: Operation | None, reason: str, **kwargs: Any) -> None:
    logger.info(
        "refused %s: %s", str(operation or "a request"), reason, extra=_extra(operation) | {"reason": reason}
    )


def _extra(operation: Operation | None) -> dict[str, str]:
    if operation is None:
        return {}
    fingerprint = operation.fingerprint.hex() if operation.fingerprint else ""
    return {"operation": operation.name, "record_id": str(operation.id), "fingerprint": fingerprint}
