"""Who asks for the same text gets the same message: decided by the unique key of its window."""

import uuid
from functools import partial

from django.db import IntegrityError, transaction

from idempotency import engine
from idempotency.dialects import Clock

from .models import Message, MessageStatus, Window
from .rules import Text, end_of, key_of


class _Overtaken(Exception):
    """A rival has opened the window; what this one wrote is rolled back."""


TRIES = 5
"""A rival may open a window, or free it, between look and move."""


def enter(text: Text) -> Message:
    """Return the message of the open window of this text; open one with a new message where there is none.

    However many ask at once, all get the same message.

    :raises OperationInProgress: when rivals come first every time.
    """
    key = key_of(text)
    for _ in range(TRIES):
        window = Window.objects.looked_at().select_related("message").filter(key=key).first()
        if window and window.is_open:
            return window.message
        try:
            return engine.rerun(partial(_open, text, key, window))
        except _Overtaken:
            continue
    raise engine.in_progress()


def begin_attempt(message: Message) -> bool:
    """Count the window anew from this send attempt; return whether it is still the message's.

    Part of the caller's transaction.
    """
    Message.objects.filter(pk=message.pk).update(attempted_at=Clock())
    attempted_at = Message.objects.values_list("attempted_at", flat=True).get(pk=message.pk)
    ends_at = end_of(message.kind, attempted_at=attempted_at)
    return bool(Window.objects.filter(message=message).update(opened_at=attempted_at, ends_at=ends_at))


def is_given_up(text: Text) -> bool:
    """Tell whether nobody knows what became of this text, and its provider is no longer asked."""
    unknown = Message.objects.filter(window__key=key_of(text), status=MessageStatus.UNKNOWN)
    return unknown.exists() and not unknown.worth_asking().exists()


def _open(text: Text, key: str, ended: Window | None) -> Message:
    """Insert, or take over, but never one after the other: on MariaDB the two lock each other out."""
    with transaction.atomic():
        message = _new_message(text)
        if ended is None:
            _insert(key, message)
        elif not Window.objects.take_over(ended, message=message):
            raise _Overtaken
        begin_attempt(message)
    return message


def _insert(key: str, message: Message) -> None:
    try:
        Window.objects.create(key=key, message=message, opened_at=Clock())
    except IntegrityError as error:
        raise _Overtaken from error


def _new_message(text: Text) -> Message:
    return Message.objects.create(
        number=f"MSG{uuid.uuid4().hex}",
        channel=text.channel,
        recipient=text.recipient,
        template=text.template,
        kind=text.kind,
        biz_id=text.biz_id,
        campaign_id=text.campaign_id,
        created_at=Clock(),
    )
