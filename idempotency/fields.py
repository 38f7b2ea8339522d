"""A field that compares alike on every database."""

from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper


class NameField(models.CharField):  # type: ignore[type-arg]
    """A name that is compared by its bytes: ``abc``, ``ABC`` and ``abc `` are three, also on MySQL."""

    def db_parameters(self, connection: BaseDatabaseWrapper) -> dict[str, Any]:
        """Name the collation, where the usual ones ignore case, accents or spaces at the end."""
        parameters: dict[str, Any] = super().db_parameters(connection)
        if connection.vendor == "mysql":
            is_mariadb = connection.mysql_is_mariadb  # type: ignore[attr-defined]
            parameters["collation"] = "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin"
        return parameters
