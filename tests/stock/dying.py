"""Take three articles for one order, and die after so many updates: ``python -m tests.stock.dying 2``."""

import os
import sys

import django

django.setup()

from django.db import connection  # noqa: E402

from stock.models import StockItem  # noqa: E402

lives = int(sys.argv[1])


def die(execute, sql, params, many, context):
    global lives
    done = execute(sql, params, many, context)
    lives -= sql.startswith("UPDATE")
    if not lives:
        os._exit(9)
    return done


with connection.execute_wrapper(die):
    StockItem.objects.deduct_all(quantities={"TEA-200": 1, "CUP-010": 1, "TEA-100": 1}, reference="order:1")
