"""Service functions and plain Django views that happen once."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial, wraps
from http import HTTPStatus
from inspect import signature
from typing import Any

from asgiref.sync import async_to_sync, iscoroutinefunction, sync_to_async
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from . import answers, bodies, calls, engine, guards, http, leased
from .calls import ALL, Part
from .exceptions import IdempotencyError
from .policies import DEFAULT, Policy, Unset
from .values import Operation, Outcome, Run


def idempotent(
    name: str,
    *,
    key: Part,
    scope: Part = (),
    fingerprint: Any = ALL,
    retention: timedelta | Unset | None = DEFAULT,
    wait: timedelta | Unset = DEFAULT,
    lease: timedelta | None = None,
    using: str | None = None,
) -> Callable[[Callable[..., Any]], Any]:
    """Make a function happen once for each key among its arguments.

    ``key``, ``scope`` and ``fingerprint`` are each the name of an argument, several names, or a function of
    all arguments. By default all callers share one scope, and the fingerprint is of every argument that
    makes neither key nor scope; ``fingerprint=None`` takes every call with the key for the same one.

    The function's writes and its result are committed together. A repeat gets an equal result. Results are
    kept as JSON, in which decimals, dates, times, spans and UUIDs survive and tuples are lists, at first too.
    With a ``lease`` the work may leave this database: the function is given a
    :class:`~idempotency.leased.Claim` as ``claim``, does its writes in ``claim.step()`` and its calls in
    ``claim.call()``, and must not be called inside a transaction.

    ``function.run(…)`` returns a :class:`~idempotency.values.Run`, which tells whether it was a replay.

    :raises KeyMissing: on a call whose key, or a part of key or scope, is ``None``; or whose key is empty.
    :raises KeyInvalid: on a call whose key is blank, too long, or not printable.
    :raises KeyReused, OperationInProgress, StoreUnavailable: on a call, as :func:`idempotency.engine.run`.
    """
    policy = Policy(operation=name, retention=retention, wait=wait, lease=lease, using=using)

    def decorate(function: Callable[..., Any]) -> Any:
        parameters = calls.without_claim(signature(function)) if lease else signature(function)
        calls.check_names(function.__qualname__, parameters, key, scope, fingerprint)
        plain = async_to_sync(function) if iscoroutinefunction(function) else function

        def run(*args: Any, **kwargs: Any) -> Run:
            arguments = calls.arguments(parameters, args, kwargs)
            try:
                operation = calls.operation(name, arguments, key=key, scope=scope, fingerprint=fingerprint)
            except IdempotencyError as error:
                engine.refuse(error)
                raise
            return calls.run(operation, partial(plain, *args, **kwargs), policy=policy)

        def call(*args: Any, **kwargs: Any) -> Any:
            return run(*args, **kwargs).value

        wrapper = wraps(function)(_in_thread(call) if iscoroutinefunction(function) else call)
        wrapper.__signature__ = parameters  # type: ignore[attr-defined]
        wrapper.run = _in_thread(run) if iscoroutinefunction(function) else run  # type: ignore[attr-defined]
        return wrapper

    return decorate


def idempotent_view(
    policy: Policy | None = None,
    *,
    key: Callable[[HttpRequest], str | None] = http.key,
    scope: Callable[[HttpRequest], str] = http.scope,
    fingerprint: Callable[[HttpRequest, Policy], bytes | None] = http.fingerprint,
    label: Callable[[HttpRequest, str], str] = lambda request, key: key,
    replay: Callable[[HttpRequest, Outcome], HttpResponseBase] = lambda request, outcome: answers.replay(
        outcome
    ),
) -> Callable[[Any], Any]:
    """Make a Django view, function or class, sync or async, happen once for each ``Idempotency-Key``.

    What must run each time stands above it: ``login_required``, say. The view's writes and its answer are
    committed together; an answer that is not worth keeping, and any exception, rolls the writes back and
    frees the key. An async view runs with its transaction in the request's own thread: database work that
    it sends to other threads (``thread_sensitive=False``) is outside the guarantee.

    With a policy that has a ``lease`` the view is taken out of ATOMIC_REQUESTS and finds its claim at
    ``request.idempotency_claim``.
    """
    if policy is not None and not isinstance(policy, Policy):
        raise TypeError("Write @idempotent_view() with parentheses, or give it a Policy.")
    guard = _Guard(policy or Policy(), key, scope, fingerprint, label, replay)

    def decorate(view: Any) -> Any:
        if isinstance(view, type):
            return _decorate_class(view, decorate)
        plain = async_to_sync(view) if iscoroutinefunction(view) else view

        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            return guard.answer(partial(plain, request, *args, **kwargs), request)

        wrapped = wraps(view)(_in_thread(guarded) if iscoroutinefunction(view) else guarded)
        return http.exempt(wrapped, guard.policy)

    return decorate


@dataclass(frozen=True)
class _Guard:
    """The options of :func:`idempotent_view`, at work on one request."""

    policy: Policy
    key: Callable[[HttpRequest], str | None]
    scope: Callable[[HttpRequest], str]
    fingerprint: Callable[[HttpRequest, Policy], bytes | None]
    label: Callable[[HttpRequest, str], str]
    replay: Callable[[HttpRequest, Outcome], HttpResponseBase]

    def answer(self, view: Callable[[], Any], request: HttpRequest) -> Any:
        if request.method not in self.policy.methods:
            return http.give_back(view, self.policy)()
        try:
            return self._once(view, request, self.policy.resolve())
        except IdempotencyError as error:
            return http.problem(error, request)

    def _once(self, view: Callable[[], Any], request: HttpRequest, policy: Policy) -> Any:
        key = http.required(self.key, request, policy)
        if key is None and policy.short_window is None:
            return view()
        operation = self._operation(request, key or "", policy)
        answer = view if key is None else partial(self._run, operation, view, policy, request)
        return guards.once_within(policy.short_window, operation, answer)

    def _operation(self, request: HttpRequest, key: str, policy: Policy) -> Operation:
        return http.operation(
            request,
            policy,
            key=key,
            scope=self.scope(request),
            fingerprint=self.fingerprint(request, policy),
            label=self.label(request, key) if key else "",
        )

    def _run(
        self, operation: Operation, view: Callable[[], Any], policy: Policy, request: HttpRequest
    ) -> Any:
        rewind = partial(bodies.rewind, request)
        if policy.lease:
            run = leased.run(operation, partial(_keep_leased_answer, view, policy, request), policy=policy)
        else:
            work = partial(_keep_answer, view, policy, request)
            run = engine.run(operation, work, policy=policy, before_rerun=rewind)
        return run.value if run.replay is None else http.mark_replayed(self.replay(request, run.replay))


def _keep_answer(view: Callable[[], Any], policy: Policy, request: HttpRequest) -> tuple[Any, Outcome | None]:
    response = view()
    if hasattr(response, "render") and policy.keeps(response.status_code):
        response = response.render()
    return response, answers.keep(response, policy, request=request)


def _keep_leased_answer(
    view: Callable[[], Any], policy: Policy, request: HttpRequest, claim: leased.Claim
) -> tuple[Any, Outcome | None]:
    request.idempotency_claim = claim  # type: ignore[attr-defined]
    response, outcome = _keep_answer(view, policy, request)
    if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise leased.Unfinished(response)
    return response, outcome


def _decorate_class(view: Any, decorate: Callable[[Any], Any]) -> Any:
    as_view = view.as_view.__func__
    view.as_view = classmethod(lambda cls, **initkwargs: decorate(as_view(cls, **initkwargs)))
    return view


def _in_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    """Await a function in the request's own thread, where its transaction and its ORM work meet."""

    async def in_thread(*args: Any, **kwargs: Any) -> Any:
        return await sync_to_async(function, thread_sensitive=True)(*args, **kwargs)

    return in_thread
