"""The shop's settings for servers that the scenarios start, with gates and a view of the library's own.

``REPLICA_URL``  a second database, which then gets every read that says no database
"""

import os

from config.databases import database
from config.settings import *  # noqa: F403
from config.settings import BASE_DIR, DATABASES, MIDDLEWARE

MIDDLEWARE = ["tests.scenarios.gates.GateMiddleware", *MIDDLEWARE]
ROOT_URLCONF = "tests.scenarios.urls"

IDEMPOTENCY_CACHE = os.environ.get("TEST_CACHE") or None  # most look at the database behind the shop's back

if REPLICA_URL := os.environ.get("REPLICA_URL"):
    DATABASES = {**DATABASES, "replica": database(REPLICA_URL, base=BASE_DIR)}
    DATABASE_ROUTERS = ["tests.scenarios.replica.ReplicaRouter"]
