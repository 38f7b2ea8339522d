"""How the next calls shall go wrong.

A rule is a JSON object:

``mode``      what happens, see :data:`MODES`
``call``      ``charge`` (by default), ``find``, ``close``, ``refund`` or ``message``
``order``     only for this order number
``phone``     only for this telephone number
``provider``  only for this provider
``times``     for so many calls, 1 by default; 0 for all
``chance``    for a share of the calls, 1.0 by default
``seconds``   how long ``slow`` takes, and how long a silence lasts before the connection is cut, 0 by default
"""

import random
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

MODES: Final = frozenset(
    {
        "decline",  # a definite no
        "busy",  # a definite "not now": not done, and a 503
        "slow",  # done, after so many seconds
        "silent_after",  # done, and no answer
        "silent_before",  # not done, and no answer
        "error_after",  # done, and a 500
        "error_before",  # not done, and a 500
    }
)


@dataclass(kw_only=True)
class Rule:
    """One way to go wrong."""

    mode: str
    call: str = "charge"
    order: str | None = None
    phone: str | None = None
    provider: str | None = None
    times: int = 1
    chance: float = 1.0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"mode is one of {sorted(MODES)}")

    def matches(self, call: str, **subject: str | None) -> bool:
        """Tell whether it is for this call."""
        is_meant = self.call == call and all(
            getattr(self, name) in (None, subject.get(name)) for name in ("order", "phone", "provider")
        )
        return is_meant and random.random() < self.chance  # noqa: S311


@dataclass
class Rules:
    """All of them; the first that matches is taken."""

    rules: list[Rule] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    def add(self, document: dict[str, Any]) -> None:
        """Take one more rule.

        :raises TypeError, ValueError: when it is none.
        """
        with self.lock:
            self.rules.append(Rule(**document))

    def clear(self) -> None:
        """Let everything go well again."""
        with self.lock:
            self.rules.clear()

    def take(self, *, call: str, **subject: str | None) -> Rule | None:
        """Return the rule for this call, used up by one."""
        with self.lock:
            rule = next((rule for rule in self.rules if rule.matches(call, **subject)), None)
            if rule and rule.times == 1:
                self.rules.remove(rule)
            elif rule and rule.times:
                rule.times -= 1
            return rule
