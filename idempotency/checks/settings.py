"""The ``IDEMPOTENCY_*`` settings: known names, right types, nothing that can only do harm."""

import re
from collections.abc import Callable, Collection
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, Final

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004

from idempotency import conf
from idempotency.policies import check_remember

PREFIX: Final = "IDEMPOTENCY_"
NOTHING: Final = timedelta(0)


@register("idempotency")
def check_names(**kwargs: Any) -> list[CheckMessage]:
    """A setting with a typo in its name does nothing."""
    names = [name for name in dir(settings) if name.startswith(PREFIX) and name.isupper()]
    return [
        Warning(
            f"{name} is no setting of django-idempotency: it does nothing.",
            hint=_did_you_mean(name),
            id="idempotency.W001",
        )
        for name in names
        if name not in conf.DEFAULTS
    ]


@register("idempotency")
def check_values(**kwargs: Any) -> list[CheckMessage]:
    return [
        Error(f"{name} is {value!r}.", hint=f"Make it {wanted}.", id="idempotency.E001")
        for name, (is_right, wanted) in RULES.items()
        if not is_right(value := conf.get(name.removeprefix(PREFIX)))
    ]


@register("idempotency")
def check_remembered(**kwargs: Any) -> list[CheckMessage]:
    """A server error that is kept would be the answer for ever."""
    statuses = conf.get("REMEMBER")
    if not _are_numbers(statuses):
        return []  # said above
    try:
        check_remember(statuses)
    except ValueError as error:
        hint = "Name statuses from 400 to 499 that are final answers, such as 402 for a declined payment."
        return [Error(f"IDEMPOTENCY_REMEMBER: {error}", hint=hint, id="idempotency.E002")]
    return []


def _did_you_mean(name: str) -> str:
    known = {setting.removeprefix(PREFIX): setting for setting in conf.DEFAULTS}
    if close := get_close_matches(name.removeprefix(PREFIX), known, n=1):
        return f"Did you mean {known[close[0]]}?"
    return f"The settings are {', '.join(conf.DEFAULTS)}."


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_numbers(values: Any) -> bool:
    return (
        isinstance(values, Collection)
        and not isinstance(values, str | bytes)
        and all(map(_is_number, values))
    )


def _is_span(value: Any, *, longer_than: timedelta) -> bool:
    return isinstance(value, timedelta) and value > longer_than


def _is_header(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9-]+", value) is not None


def _is_template(value: Any) -> bool:
    try:
        return bool(isinstance(value, str) and value.format(code="x"))
    except (LookupError, ValueError):
        return False


def _are_routes(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(topic, str) and topic != "" and _are_names(names) for topic, names in value.items()
    )


def _are_names(values: Any) -> bool:
    return (
        isinstance(values, Collection)
        and not isinstance(values, str | bytes)
        and all(isinstance(name, str) and name != "" for name in values)
    )


RULES: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "IDEMPOTENCY_DATABASE": (
        lambda value: value is None or value in settings.DATABASES,
        "the alias of a database in DATABASES, or None for the one that the router names",
    ),
    "IDEMPOTENCY_CACHE": (
        lambda value: value is None or value in settings.CACHES,
        "the alias of a cache in CACHES, or None for no replay cache",
    ),
    "IDEMPOTENCY_HEADER": (
        _is_header,
        'the name of a header: letters, digits and hyphens, such as "Idempotency-Key"',
    ),
    "IDEMPOTENCY_REQUIRED": (lambda value: isinstance(value, bool), "True or False"),
    "IDEMPOTENCY_REPLAY_FIRST": (lambda value: isinstance(value, bool), "True or False"),
    "IDEMPOTENCY_RETENTION": (
        lambda value: value is None or _is_span(value, longer_than=NOTHING),
        "a timedelta longer than zero, such as timedelta(hours=24), or None to keep outcomes for ever",
    ),
    "IDEMPOTENCY_WAIT": (
        lambda value: isinstance(value, timedelta) and value >= NOTHING,
        "a timedelta; timedelta(0) does not wait",
    ),
    "IDEMPOTENCY_REMEMBER": (_are_numbers, "a set of statuses, such as {402}"),
    "IDEMPOTENCY_BODY_LIMIT": (
        lambda value: _is_number(value) and value >= 0,
        "a number of bytes, such as 1024 * 1024",
    ),
    "IDEMPOTENCY_RETRY_AFTER": (
        lambda value: _is_span(value, longer_than=NOTHING),
        "a timedelta longer than zero, such as timedelta(seconds=1)",
    ),
    "IDEMPOTENCY_RERUNS": (lambda value: _is_number(value) and value >= 0, "a whole number, 0 or more"),
    "IDEMPOTENCY_OUTBOX_ROUTES": (
        _are_routes,
        'a dict of topics, each with a list of task names: {"orders.paid": ["mails.send_receipt"]}',
    ),
    "IDEMPOTENCY_OUTBOX_SENDER": (
        lambda value: isinstance(value, str) and "." in value,
        "the dotted path of a function that sends one message",
    ),
    "IDEMPOTENCY_OUTBOX_RELAY_ON_COMMIT": (lambda value: isinstance(value, bool), "True or False"),
    "IDEMPOTENCY_OUTBOX_LEASE": (
        lambda value: _is_span(value, longer_than=timedelta(seconds=2)),
        "a timedelta longer than 2 seconds, such as timedelta(seconds=30)",
    ),
    "IDEMPOTENCY_OUTBOX_MAX_ATTEMPTS": (
        lambda value: _is_number(value) and value >= 1,
        "a whole number, 1 or more",
    ),
    "IDEMPOTENCY_OUTBOX_RETENTION": (
        lambda value: value is None or _is_span(value, longer_than=NOTHING),
        "a timedelta longer than zero, such as timedelta(days=7), or None to keep sent messages for ever",
    ),
    "IDEMPOTENCY_PROBLEM_URL": (
        _is_template,
        'an address, in which "{code}" stands for the problem\'s code; other braces are doubled',
    ),
}
