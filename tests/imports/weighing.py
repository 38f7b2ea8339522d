"""``manage.py …``, which then says how many MB it took at most: ``python -m tests.imports.weighing …``."""

import re
import sys
from pathlib import Path

import django

django.setup()

from django.core.management import call_command  # noqa: E402

call_command(*sys.argv[1:])
# since the program began: getrusage() also knows what the process was before, a copy of pytest's
most = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
print(int(most[1]) // 1024, file=sys.stderr)  # noqa: T201
