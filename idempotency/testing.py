"""Helpers to test that an operation of yours happens once, whoever repeats it and whatever dies.

>>> def test_twenty_clicks_make_one_order(client, django_user):  # with real commits: TransactionTestCase
...     headers = {"Idempotency-Key": key()}
...     with assert_once(Order):
...         answers = race(partial(post_order, headers=headers), times=20)
"""

import os
import signal
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from threading import Barrier
from typing import Any, Final, Literal, TypeVar, get_args
from unittest.mock import patch

from django.db import connections, models, transaction

from . import answers, engine, http

T = TypeVar("T")

Point = Literal["before_claim", "after_claim", "in_handler", "before_commit", "after_commit"]
"""Where an operation can die: before and after its claim; when its handler has done its work and not
returned; when the outcome is written and not committed; when it is committed and not answered."""

POINTS: Final[tuple[Point, ...]] = get_args(Point)

CRASH_VARIABLE: Final = "HTTP_X_CRASH_AT"


def key() -> str:
    """Return a fresh key."""
    return str(uuid.uuid4())


def race(*calls: Callable[[], T], times: int = 1) -> list[T | BaseException]:
    """Run each of the calls ``times`` times, all at once, each in a thread of its own.

    >>> race(pay, cancel)
    >>> race(partial(create_order, key="k"), times=20)

    All start together and each has its own database connections, closed at its end. They need data that is
    committed: use ``TransactionTestCase`` or ``django_db(transaction=True)``, and on SQLite a file.

    :returns: what each returned, or the exception that it raised, in the order of the calls.
    """
    runners = calls * times
    start = Barrier(len(runners), timeout=60)
    with ThreadPoolExecutor(len(runners)) as pool:
        futures = [pool.submit(copy_context().run, _start, start, call) for call in runners]
    return [future.result() for future in futures]


def _start(start: Barrier, call: Callable[[], T]) -> T | BaseException:
    try:
        start.wait()
        return call()
    except (Exception, Crash) as error:  # noqa: BLE001  it is the result
        return error
    finally:
        connections.close_all()


@contextmanager
def assert_once(*effects: type[models.Model] | models.QuerySet[Any]) -> Iterator[None]:
    """Assert that the block makes exactly one new row of each model, or in each QuerySet.

    >>> with assert_once(Order, StockEntry.objects.filter(sku="TEA-100")):
    ...     race(create_order, times=20)

    Rows that were there before do not count, changed or not.
    """
    querysets = [_rows(effect) for effect in effects]
    before = [_ids(rows) for rows in querysets]
    yield
    for rows, known in zip(querysets, before, strict=True):
        new = _ids(rows) - known
        assert len(new) == 1, (
            f"{len(new)} new rows of {rows.model._meta.label} instead of 1: {sorted(map(str, new))}"
        )


def _rows(effect: Any) -> models.QuerySet[Any]:
    return effect if isinstance(effect, models.QuerySet) else effect._default_manager.all()


def _ids(rows: models.QuerySet[Any]) -> set[Any]:
    return set(rows.values_list("pk", flat=True))


def assert_replays(again: Any, first: Any, *, headers: Iterable[str] = ()) -> None:
    """Assert that the answer ``again`` is the answer ``first`` once more, and says so.

    Same status, same body bytes, same kept headers (and those named in ``headers``, which the policy
    adds), and ``Idempotent-Replayed: true`` on the second only. Takes the answers of Django's and REST
    framework's test clients, httpx and requests.
    """
    assert http.REPLAYED not in first.headers, "the first answer is a replay itself"
    assert again.headers.get(http.REPLAYED) == "true", f"no replay, but a new answer: {again.status_code}"
    _assert_same("status", again.status_code, first.status_code)
    _assert_same("body", _body(again), _body(first))
    for name in sorted(answers.KEPT_HEADERS | {name.lower() for name in headers}):
        _assert_same(name, again.headers.get(name), first.headers.get(name))


def _assert_same(what: str, now: Any, then: Any) -> None:
    assert now == then, f"{what} is {now!r}, and was {then!r} at first"


def _body(answer: Any) -> bytes:
    return bytes(answer.getvalue() if getattr(answer, "streaming", False) else answer.content)


class Crash(BaseException):
    """The end of the process, as far as the code can tell: ``except Exception`` does not catch it."""


Die = Callable[[], None]

_plan: ContextVar[tuple[str, Die] | None] = ContextVar("plan", default=None)


def _raise() -> None:
    raise Crash


def kill() -> None:
    """End this process as ``kill -9`` does."""
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def crash_at(point: Point, *, by: Die = _raise) -> Iterator[None]:
    """Let each guarded operation in the block die at ``point``; its retry belongs after the block.

    >>> with pytest.raises(Crash), crash_at("before_commit"):
    ...     client.post(url, data, headers=headers)
    >>> client.post(url, data, headers=headers)  # runs afresh

    By default :class:`Crash` is raised, which rolls back like the death of the process; ``by=kill`` is that
    death itself. Calls made by :func:`race` die too. ``after_commit`` needs a real commit: no ``TestCase``.

    :raises ValueError: when there is no such point.
    """
    with _points(), _planned(point, by):
        yield


def crashing(application: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a WSGI application so that a request with ``X-Crash-At: <point>`` kills its worker there.

    For a test's own server only, never for one that strangers reach:

    >>> application = crashing(get_wsgi_application())
    """

    def wrapped(environ: dict[str, Any], start_response: Any) -> Any:
        point = environ.get(CRASH_VARIABLE)
        with _planned(point, kill) if point else nullcontext():
            return application(environ, start_response)

    _points().start()  # for the life of the process: a request that ends must not stop another's plan
    return wrapped


@contextmanager
def _planned(point: str, by: Die) -> Iterator[None]:
    if point not in POINTS:
        raise ValueError(f"{point!r} is no point to crash at: {', '.join(POINTS)}.")
    token = _plan.set((point, by))
    try:
        yield
    finally:
        _plan.reset(token)


def _points() -> Any:
    """Let the engine pass the points, where nothing happens unless the caller's context has planned it."""
    attempt, call, announce = engine._attempt, engine._call, engine.announce

    def attempt_between_points(claim: Any, policy: Any) -> Any:
        _reach("before_claim")
        found = attempt(claim, policy)
        if found is None:
            _reach("after_claim")
        return found

    def call_then_point(connection: Any, operation: Any, handler: Any) -> Any:
        def handle() -> Any:
            result = handler()
            _reach("in_handler")
            return result

        return call(connection, operation, handle)

    def announce_between_points(*args: Any, alias: str, **kwargs: Any) -> None:
        _reach("before_commit")
        transaction.on_commit(lambda: _reach("after_commit"), using=alias)
        announce(*args, alias=alias, **kwargs)

    return patch.multiple(
        engine,
        _attempt=attempt_between_points,
        _call=call_then_point,
        announce=announce_between_points,
    )


def _reach(point: Point) -> None:
    plan = _plan.get()
    if plan and plan[0] == point:
        plan[1]()
