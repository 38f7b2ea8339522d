"""E-mail through Django's backend. A server that has taken a mail cannot be asked about it later."""

import smtplib
from collections.abc import Mapping
from datetime import datetime
from email.utils import parseaddr
from typing import Any, NoReturn

from django.conf import settings
from django.core import mail
from django.utils.module_loading import import_string

from notifications.texts import wording

from .base import Busy, NoAnswer, ProviderError, Rejected, Unreachable


class Mail:
    """The same mail always has the same Message-ID: who gets it twice can tell."""

    is_once_by_key = False

    def send(self, *, key: str, recipient: str, template: str, params: Mapping[str, str]) -> str:
        """Send a mail; its number is its Message-ID."""
        if (said := wording(template, params)) is None:
            raise Rejected(f"there are no words for {template}")
        message_id = f"<{key}@{_domain()}>"
        connection = _connected()
        letter = mail.EmailMessage(
            said.subject, said.body, to=[recipient], headers={"Message-ID": message_id}
        )
        try:
            connection.send_messages([letter])
        except (smtplib.SMTPException, OSError) as error:
            raise _meaning(error) from error
        finally:
            _close(connection)
        return message_id

    def find(self, *, key: str, recipient: str, since: datetime) -> NoReturn:
        """Nobody can be asked."""
        raise NoAnswer("a mail server does not tell what it has taken")

    def close(self, *, key: str) -> NoReturn:
        """There is no such thing."""
        raise NoAnswer("a mail server takes nothing back")


def _domain() -> str:
    return parseaddr(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2]


def _backend() -> Any:
    """Return the default one of ``MAILERS``, a setting of Django 6.1, which is read for earlier ones here."""
    if hasattr(mail, "mailers"):
        return mail.mailers.create_connection("default")
    mailer = settings.MAILERS["default"]
    return import_string(mailer["BACKEND"])(**mailer.get("OPTIONS", {}))


def _connected() -> Any:
    """Connect first: whatever goes wrong here, nothing was sent."""
    connection = _backend()
    try:
        connection.open()
    except (smtplib.SMTPException, OSError) as error:
        raise Unreachable(type(error).__name__) from error
    return connection


def _meaning(error: Exception) -> ProviderError:
    """Tell a refusal by its code (RFC 5321: 4xx is "not now", 5xx is "no") from a lost connection."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        codes = [code for code, _ in error.recipients.values()]
    elif isinstance(error, smtplib.SMTPResponseException):
        codes = [error.smtp_code]
    else:
        return NoAnswer(type(error).__name__)
    said = f"{type(error).__name__} {codes}"  # not the server's words, which repeat the address
    return Rejected(said) if all(code >= 500 for code in codes) else Busy(said)


def _close(connection: Any) -> None:
    try:
        connection.close()
    except (smtplib.SMTPException, OSError):
        return  # what was said on it is known already
