"""How long the tests marked ``campaign`` run."""

import os


def rounds(*, short: int, full: int) -> int:
    """*short* in an ordinary run, *full* under ``make campaign``."""
    return full if os.environ.get("CAMPAIGN") else short
