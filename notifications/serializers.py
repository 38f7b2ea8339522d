"""What a client sends to have a text sent, checked; and what it gets, spelt."""

from typing import Any

from django.core.validators import RegexValidator
from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from shop.envelopes import instant

from . import phones
from .exceptions import InvalidPhoneNumber
from .models import ASKABLE, Kind
from .rules import RULES, Text
from .sending import Delivery

TEMPLATE = RegexValidator(r"\A[A-Za-z0-9_.-]{1,64}\Z")


class StringField(serializers.CharField):
    """A JSON string as it was sent: a number is none."""

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        """:raises ValidationError: when it is anything else."""
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class NumberField(StringField):
    """A number or code of the shop: 1 to 64 printable characters, no blank at either end."""

    default_error_messages = {"odd": _("1 to 64 printable characters are expected, no blank at either end.")}

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=64, **options)

    def to_internal_value(self, data: Any) -> str:
        """:raises ValidationError: when it is none."""
        number = super().to_internal_value(data)
        if number != number.strip() or not number.isprintable():
            self.fail("odd")
        return number


class PhoneField(serializers.Field):
    """A telephone number, in any usual spelling."""

    def to_internal_value(self, data: Any) -> str:
        """:raises InvalidPhoneNumber: when it is none."""
        if not isinstance(data, str):
            raise InvalidPhoneNumber
        return phones.normalise(data)


class SmsSerializer(serializers.Serializer):
    """``{phone, template, biz_id?, kind?, campaign_id?}``"""

    phone = PhoneField()
    template = StringField(validators=[TEMPLATE])
    kind = serializers.ChoiceField(
        [kind.value for kind in ASKABLE], required=False, allow_null=True, default=None
    )
    biz_id = NumberField(required=False, allow_null=True, default=None)
    campaign_id = NumberField(required=False, allow_null=True, default=None)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Let no part of the key be missing.

        :raises ValidationError: when one is; it names the field.
        """
        parts = RULES[Kind(attrs["kind"] or "")].parts
        if missing := [name for name in parts if name != "recipient" and not attrs[name]]:
            message = _("This kind of text needs it.")
            raise serializers.ValidationError(dict.fromkeys(missing, message), code="required")
        return attrs

    @property
    def text(self) -> Text:
        """What is to be sent."""
        data = self.validated_data
        return Text(
            recipient=data["phone"],
            template=data["template"],
            kind=data["kind"] or "",
            biz_id=data["biz_id"] or "",
            campaign_id=data["campaign_id"] or "",
        )


def sms_data(delivery: Delivery) -> dict[str, Any]:
    """Spell what was sent."""
    return {"isDuplicate": False, "sentAt": instant(delivery.sent_at)}
