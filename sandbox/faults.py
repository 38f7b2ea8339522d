"""Going wrong as the rules say."""

import time

from .rules import Rule


class BadRequest(Exception):
    """Nothing was done; the message says why."""


class Silence(Exception):
    """No answer at all."""


class Failure(Exception):
    """A 500."""


class Busy(Exception):
    """A 503: nothing was done, and the same may go well later."""


BEFORE = {"silent_before": Silence, "error_before": Failure, "busy": Busy}
AFTER = {"silent_after": Silence, "error_after": Failure}


def before(rule: Rule | None) -> None:
    """Go wrong before anything is done."""
    if rule is None:
        return
    if rule.mode != "silent_after":
        time.sleep(rule.seconds)
    if rule.mode in BEFORE:
        raise BEFORE[rule.mode]


def after(rule: Rule | None) -> None:
    """Go wrong once it is done."""
    if rule is None:
        return
    if rule.mode == "silent_after":
        time.sleep(rule.seconds)
    if rule.mode in AFTER:
        raise AFTER[rule.mode]


def is_declined(rule: Rule | None) -> bool:
    """Tell whether the answer is a definite no."""
    return rule is not None and rule.mode == "decline"
