"""``manage.py import_orders``, killed at one of its statements: ``python -m tests.imports.dying 40 FILE``."""

import os
import signal
import sys
import time

import django

django.setup()

from django.core.management import CommandError, call_command  # noqa: E402
from django.db import connection  # noqa: E402

lives = int(sys.argv[1])
patience = time.monotonic() + 30


def die(execute, sql, params, many, context):
    global lives
    done = execute(sql, params, many, context)
    lives -= 1
    if not lives:
        os.kill(os.getpid(), signal.SIGKILL)
    return done


with connection.execute_wrapper(die):
    while True:  # until the lease of the one before has ended
        try:
            call_command("import_orders", *sys.argv[2:])
        except CommandError as error:
            if "right now" not in str(error) or time.monotonic() > patience:
                raise
            lives += 5  # looking is not working
        else:
            break
