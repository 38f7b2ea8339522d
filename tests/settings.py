"""The shop's settings on the servers of the run, with an app to try the library on.

Each run tests PostgreSQL (``default``), MariaDB (``mariadb``) and SQLite (``sqlite``);
``MATRIX_DATABASE`` narrows it to one of them, which is then the default.
"""

import os
from pathlib import Path

os.environ.setdefault("SECRET_KEY", "known to everybody who reads the tests")

from config.databases import database
from config.settings import *  # noqa: F403
from config.settings import BASE_DIR, DATABASES, INSTALLED_APPS

ONLY = os.environ.get("MATRIX_DATABASE")
MARIADB_URL = os.environ.get("MARIADB_URL")
SQLITE_FILE = Path(os.environ.get("TEST_FILES", BASE_DIR / "var"), "tests.sqlite3")

sqlite = database(f"sqlite:///{SQLITE_FILE}", base=BASE_DIR)
# A file, because threads and processes do not share a database in memory.
sqlite["TEST"] = {"NAME": SQLITE_FILE}

if ONLY == "sqlite":
    DATABASES = {"default": sqlite}
elif not ONLY:
    DATABASES = {**DATABASES, "sqlite": sqlite}
    if MARIADB_URL:
        DATABASES["mariadb"] = database(MARIADB_URL, base=BASE_DIR)

INSTALLED_APPS = [*INSTALLED_APPS, "tests.lab"]
ROOT_URLCONF = "tests.urls"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
IDEMPOTENCY_CACHE = None  # keys and databases of tests come again; those that want it ask for it
FLASH_GATE_URL = ""  # likewise
WHITENOISE_AUTOREFRESH = True  # no collectstatic before a run
