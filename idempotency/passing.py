"""Errors that pass by themselves: whoever meets one does the same again, later."""

import logging
from collections.abc import Iterator

from django.db import InterfaceError, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from . import conf, dialects, engine
from .exceptions import RetryLater, StoreUnavailable

logger = logging.getLogger("idempotency")


def reason(error: BaseException) -> RetryLater | None:
    """Return why to try again later, when a database was lost, away, or in a conflict with rivals.

    An error that was raised from such a one, or while it was handled, counts as it does. ``None`` for all
    others: they would happen again. Ask before anything connects again.
    """
    return next(filter(None, map(_reason, _chain(error))), None)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _reason(error: BaseException) -> RetryLater | None:
    if not isinstance(error, OperationalError | InterfaceError):
        return None
    if dialects.is_conflict(error):
        return engine.in_progress()
    if not _is_away(error):
        return None
    logger.warning("the database could not be reached, or broke", exc_info=error)
    return StoreUnavailable(conf.get("RETRY_AFTER"))


def _errors(connection: BaseDatabaseWrapper) -> type[Exception]:
    return connection.Database.Error  # type: ignore[attr-defined, no-any-return]


def _is_away(error: BaseException) -> bool:
    """Tell by the code, or by the connections: one that ``atomic`` has made anew remembers no error."""
    known = connections.all(initialized_only=True)
    failed = [connection for connection in known if connection.errors_occurred]
    if not any(isinstance(error.__cause__, _errors(connection)) for connection in known):
        return False  # somebody's own
    if any(connection.connection is None for connection in failed):
        return dialects.is_unavailable(error)
    if dialects.code(error) is None and not failed:
        return True
    suspects = failed if dialects.code(error) is None else known
    return any(dialects.is_lost(error, connection) for connection in suspects)
