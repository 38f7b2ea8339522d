"""Let the demo stop time inside a handler, where a client hangs up or a worker is killed."""

import os
import time
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest

HEADER = "X-Demo-Pause"
NAME_HEADER = "X-Demo-Pause-Name"
LONGEST = timedelta(seconds=5)


def pause(request: HttpRequest) -> None:
    """Sleep as many seconds as the header asks for; nothing happens unless this is the demo's own server.

    The process announces itself first: the file of the given name in ``DEMO_PAUSES`` then holds its id.
    """
    seconds = request.headers.get(HEADER, "")
    if not settings.DEMO_PAUSES or not seconds.isdecimal():
        return
    if name := request.headers.get(NAME_HEADER):
        _announce(Path(settings.DEMO_PAUSES) / Path(name).name)
    time.sleep(min(int(seconds), LONGEST.total_seconds()))


def _announce(path: Path) -> None:
    """Appear at once and whole: a reader never sees half a process id."""
    unfinished = path.with_suffix(".part")
    unfinished.write_text(str(os.getpid()))
    unfinished.rename(path)
