"""How long reading may take."""

import time

from .refusals import refusal


class Deadline:
    """The moment at which reading has taken too long, counted from now."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        self._at = time.monotonic() + seconds

    def check(self) -> None:
        """Go on while there is time.

        :raises FileRefused: ``takes_too_long``.
        """
        if time.monotonic() > self._at:
            raise refusal("takes_too_long", limit=self._seconds)
