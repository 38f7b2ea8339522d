"""What a client sends with a file, checked; and what it gets, spelt."""

from typing import Any

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from shop.envelopes import instant

from .models import Import, Mode

PERIOD = r"[0-9A-Za-z._/-]{1,32}"


class UploadSerializer(serializers.Serializer):
    """``file``, ``mode``, and ``period`` where the mode is incremental."""

    file = serializers.FileField(
        max_length=None, allow_empty_file=True
    )  # the reader says why an empty one is none
    mode = serializers.ChoiceField(choices=Mode.values)
    period = serializers.RegexField(rf"\A{PERIOD}\Z", required=False, allow_blank=True, default="")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a period that would count for nothing."""
        if attrs["period"] and attrs["mode"] != Mode.INCREMENTAL:
            raise serializers.ValidationError({"period": [_("Only an incremental import has a period.")]})
        return attrs


def import_data(source: Import) -> dict[str, Any]:
    """Spell an import for its owner, as it is now."""
    return {
        "importId": str(source.pk),
        "status": source.status,
        "importedCount": source.imported_count,
        "created": source.created,
        "updated": source.updated,
        "unchanged": source.unchanged,
        "skipped": source.skipped,
        "rejected": source.rejected,
        "isDuplicate": False,
        "importedAt": instant(source.finished_at) if source.finished_at else None,
        "mode": source.mode,
        "period": source.period,
        "fileName": source.file_name,
        "progress": {"handled": source.handled, "total": source.total, "percent": source.percent},
        "reason": source.reason,
    }
