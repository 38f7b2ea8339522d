"""What each database needs beside its address."""

from pathlib import Path
from typing import Any

import environ

OPTIONS: dict[str, dict[str, Any]] = {
    "django.db.backends.mysql": {"charset": "utf8mb4"},
    "django.db.backends.sqlite3": {
        # Without IMMEDIATE a second writer fails at once instead of waiting its turn.
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
    },
}


def database(url: str, *, base: Path) -> dict[str, Any]:
    """Return the settings of ``postgresql://…``, ``mysql://…`` or ``sqlite:///…``.

    A relative file is taken from ``base``, and its directory made; options in the address win over ours.
    """
    settings = environ.Env.db_url_config(url)
    engine = settings["ENGINE"]
    settings["OPTIONS"] = {**OPTIONS.get(engine, {}), **settings.get("OPTIONS", {})}
    settings["CONN_MAX_AGE"] = settings.get("CONN_MAX_AGE", 60)
    settings["CONN_HEALTH_CHECKS"] = engine != "django.db.backends.sqlite3"
    if engine == "django.db.backends.sqlite3" and settings["NAME"] != ":memory:":
        file = base / settings["NAME"]
        file.parent.mkdir(parents=True, exist_ok=True)
        settings["NAME"] = str(file)
    return settings
