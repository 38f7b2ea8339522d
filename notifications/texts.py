"""What the templates say, for providers that take words rather than a template's name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class Wording:
    """A subject, which mails have, and a body."""

    subject: str
    body: str


WORDINGS: Final = {
    "order_paid": Wording(
        _("Your order {biz_id} is paid"), _("We have received the payment of your order {biz_id}. Thank you!")
    ),
}


def wording(template: str, params: Mapping[str, str]) -> Wording | None:
    """Return what a template says with these ``params``; ``None`` where there is no such template, or where
    something that it tells is missing."""
    if (said := WORDINGS.get(template)) is None:
        return None
    try:
        return Wording(str(said.subject).format(**params), str(said.body).format(**params))
    except KeyError:
        return None
