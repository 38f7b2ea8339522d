"""Records and messages for people."""

from .outbox import MessageAdmin
from .records import RecordAdmin

__all__ = ["MessageAdmin", "RecordAdmin"]
