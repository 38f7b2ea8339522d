"""What happened, for metrics and logs. Receivers cannot break an operation: their errors are logged."""

from django.dispatch import Signal

executed = Signal()
"""The effect and its outcome are committed. Sent with ``operation`` and ``outcome``, and ``expired``:
whether an earlier, expired outcome of the same key was replaced."""

replayed = Signal()
"""An earlier outcome was given again. Sent with ``operation`` and ``outcome``."""

refused = Signal()
"""Nothing was done. Sent with ``reason`` (the error's code) and ``operation``: ``None`` where the key was
missing or malformed."""
