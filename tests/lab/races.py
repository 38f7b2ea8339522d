"""Several threads that start at the same moment, each with connections of its own."""

from collections.abc import Callable, Sequence
from threading import Barrier, Thread
from typing import Any

from django.db import connections

PATIENCE = 60
"""Seconds after which a thread that does not end has hung."""


def race(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run the calls side by side; return what each returned or raised, in their order."""
    start = Barrier(len(calls))
    results: list[Any] = [None] * len(calls)

    def run(number: int, call: Callable[[], Any]) -> None:
        start.wait(PATIENCE)
        results[number] = attempt(call)

    threads = [Thread(target=run, args=item, daemon=True) for item in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "a call hangs"
    return results


class Background:
    """One call in a thread of its own."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._results: list[Any] = []
        self._thread = Thread(target=lambda: self._results.append(attempt(call)), daemon=True)
        self._thread.start()

    def result(self) -> Any:
        """Wait for its end; return what it returned or raised."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the call hangs"
        return self._results[0]


def attempt(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:  # noqa: BLE001  the test looks at it
        return error
    finally:
        connections.close_all()
