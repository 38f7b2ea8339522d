"""A function call as an operation: which of its arguments make key, scope and fingerprint."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from inspect import Signature
from typing import Any, Final

from . import engine, fingerprints, keys, leased
from .exceptions import KeyMissing
from .policies import Policy
from .values import Operation, Outcome, Run

ALL: Final = object()
"""Every argument that makes neither key nor scope."""

Part = str | Collection[str] | Callable[..., Any]
"""The name of an argument, several names, or a function of all arguments."""


def arguments(parameters: Signature, args: Any, kwargs: Any) -> dict[str, Any]:
    """Return the arguments by name: however a call is written, and with defaults, they are the same.

    :raises TypeError: when the function does not take them.
    """
    bound = parameters.bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.arguments


def operation(
    name: str, arguments: Mapping[str, Any], *, key: Part, scope: Part, fingerprint: Any
) -> Operation:
    """Return the operation that a call with these arguments asks for.

    Key and scope are the arguments' texts (``5`` and ``"5"`` are one key, ``Decimal("5.00")`` is another);
    the fingerprint compares by value.

    :raises KeyMissing: when a part of key or scope is ``None``, or the key is empty.
    :raises KeyInvalid: when the key is blank, too long, or not printable.
    """
    if fingerprint is ALL:
        fingerprint = [argument for argument in arguments if argument not in _names(key) | _names(scope)]
    return Operation(
        name=name,
        scope=_text(scope, arguments),
        key=_key(key, arguments),
        fingerprint=None if fingerprint is None else fingerprints.of_value(_pick(fingerprint, arguments)),
    )


def run(operation: Operation, function: Callable[..., Any], *, policy: Policy) -> Run:
    """Call ``function`` once and keep what it returns; with a lease it is given its ``claim``.

    The run's value is what a repeat gets too.

    :raises KeyReused, OperationInProgress, ClaimLost, StoreUnavailable: as :func:`idempotency.engine.run`.
    """
    if policy.lease:
        return _of_value(leased.run(operation, partial(_complete, function), policy=policy))
    return _of_value(engine.run(operation, partial(_keep_value, function), policy=policy))


def check_names(function: str, parameters: Signature, *parts: Any) -> None:
    """:raises TypeError: when a part names what is no argument."""
    named = set().union(*(_names(part) for part in parts if part is not ALL and part is not None))
    if unknown := named - parameters.parameters.keys():
        raise TypeError(f"{function} has no argument {', '.join(sorted(unknown))}: it takes {parameters}.")


def without_claim(parameters: Signature) -> Signature:
    """Return what the caller of a leased function gives.

    :raises TypeError: when the function does not take its claim.
    """
    if "claim" not in parameters.parameters:
        raise TypeError("A leased function takes its claim as an argument: def pay(*, order_no, claim).")
    return parameters.replace(parameters=[p for name, p in parameters.parameters.items() if name != "claim"])


def _keep_value(function: Callable[[], Any]) -> tuple[None, Outcome]:
    return None, Outcome.of(function())


def _complete(function: Callable[..., Any], claim: leased.Claim) -> tuple[None, Outcome]:
    value = function(claim=claim)
    return None, claim.outcome or Outcome.of(value)


def _of_value(run: Run) -> Run:
    return replace(run, value=run.outcome.value if run.outcome else None)


def _key(part: Part, arguments: Mapping[str, Any]) -> str:
    if key := _text(part, arguments):
        return keys.check(key)
    raise KeyMissing(f"{_described(part)} is empty.")


def _names(part: Part) -> set[str]:
    if callable(part):
        return set()
    return {part} if isinstance(part, str) else set(part)


def _pick(part: Part, arguments: Mapping[str, Any]) -> Any:
    if callable(part):
        return part(**arguments)
    return {name: arguments[name] for name in _names(part)}


def _text(part: Part, arguments: Mapping[str, Any]) -> str:
    if callable(part):
        named = {"what computes key or scope": part(**arguments)}
    else:
        named = {name: arguments[name] for name in ([part] if isinstance(part, str) else part)}
    if missing := [name for name, value in named.items() if value is None]:
        raise KeyMissing(f"{', '.join(missing)} is None: key and scope need a value.")
    values = list(named.values())
    return str(values[0]) if len(values) == 1 else keys.join(*values)


def _described(part: Part) -> str:
    return "what computes the key" if callable(part) else ", ".join(sorted(_names(part)))
