"""Model and serializer fields that the sample apps share."""

from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.translation import gettext_lazy as _
from rest_framework import serializers


class CodeField(models.CharField):
    """A number or code by which something is known: ``abc`` and ``ABC`` are two on every database."""

    def db_parameters(self, connection: BaseDatabaseWrapper) -> dict[str, Any]:
        """Compare by bytes on MySQL and MariaDB too: other collations ignore case or trailing spaces."""
        parameters = super().db_parameters(connection)
        if connection.vendor == "mysql":
            parameters["collation"] = (
                "utf8mb4_nopad_bin" if connection.mysql_is_mariadb else "utf8mb4_0900_bin"  # type: ignore[attr-defined]
            )
        return parameters


class WholeNumberField(serializers.IntegerField):
    """A JSON integer: not ``1.0``, not ``"1"``, not ``true``."""

    default_error_messages = {"invalid": _("A whole number is expected, written as a JSON integer.")}

    def to_internal_value(self, data: Any) -> int:
        """Return the number as it came.

        :raises ValidationError: when it is anything else.
        """
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return data
