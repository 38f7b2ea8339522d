"""``manage.py …``, which then says how many MB it took at most: ``python -m tests.imports.weighing …``."""

import resource
import sys

import django

django.setup()

from django.core.management import call_command  # noqa: E402

call_command(*sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)  # noqa: T201
