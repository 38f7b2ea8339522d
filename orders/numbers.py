"""Order numbers: unique in the whole shop, sent to providers, short enough to be read aloud."""

import secrets
from datetime import datetime
from typing import Final

from django.utils import timezone

ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32: nothing that is mistaken for something else."""

LENGTH: Final = 10
"""50 random bits a day: a stranger cannot guess one, and two never meet."""


def new_order_no(*, now: datetime) -> str:
    """Return a fresh number such as ``ORD20261130-7K3M9QX0TB``."""
    suffix = "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
    return f"ORD{timezone.localtime(now):%Y%m%d}-{suffix}"
