"""A helper that fails is left alone, and found again."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event
from typing import Any

import pytest

from idempotency import breakers
from idempotency.breakers import DEGRADED, OK, Breaker


class Clock:
    """The breaker's time, which passes when we say so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def passes(self, span: timedelta) -> None:
        self.now += span.total_seconds()


class Helper:
    """Counts its calls, and does as it is told."""

    def __init__(self, breaker: Breaker) -> None:
        self.breaker = breaker
        self.calls = 0

    def answers(self) -> str:
        self.calls += 1
        return "answer"

    def fails(self) -> str:
        self.calls += 1
        raise ConnectionError

    def ask(self, how: Callable[[], str]) -> str:
        return self.breaker.call(how, otherwise="otherwise", errors=(ConnectionError,))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(breakers, "time", clock)
    return clock


@pytest.fixture
def helper(clock: Clock) -> Helper:
    return Helper(Breaker("helper", failures=3, slow=timedelta(milliseconds=100), pause=timedelta(seconds=5)))


@pytest.fixture
def dead(helper: Helper) -> Helper:
    """Has failed so often that it is left alone."""
    for _ in range(3):
        helper.ask(helper.fails)
    helper.calls = 0
    return helper


@pytest.fixture
def others() -> Iterator[None]:
    breakers.reset()
    yield
    breakers.reset()


class TestClosed:
    def test_gives_the_answer(self, helper: Helper) -> None:
        assert helper.ask(helper.answers) == "answer"
        assert helper.breaker.state == OK

    def test_stands_in_for_a_failure_at_once(self, helper: Helper) -> None:
        assert [helper.ask(helper.fails) for _ in range(2)] == ["otherwise"] * 2
        assert (helper.calls, helper.breaker.state) == (2, OK)

    def test_counts_only_failures_in_a_row(self, helper: Helper) -> None:
        for how in [helper.fails, helper.fails, helper.answers] * 3:
            helper.ask(how)

        assert (helper.calls, helper.breaker.state) == (9, OK)

    def test_lets_other_errors_through_and_does_not_count_them(self, helper: Helper) -> None:
        def mistake() -> str:
            raise KeyError

        for _ in range(5):
            with pytest.raises(KeyError):
                helper.ask(mistake)

        assert helper.breaker.state == OK

    def test_takes_slow_answers_and_counts_them_as_failures(self, helper: Helper, clock: Clock) -> None:
        def slow() -> str:
            clock.passes(timedelta(milliseconds=101))
            return helper.answers()

        assert [helper.ask(slow) for _ in range(4)] == ["answer"] * 3 + ["otherwise"]
        assert (helper.calls, helper.breaker.state) == (3, DEGRADED)


class TestOpen:
    def test_calls_nothing(self, dead: Helper) -> None:
        assert [dead.ask(dead.answers) for _ in range(100)] == ["otherwise"] * 100
        assert (dead.calls, dead.breaker.state) == (0, DEGRADED)

    def test_probes_once_after_the_pause_and_stays_open_when_that_fails(
        self, dead: Helper, clock: Clock
    ) -> None:
        clock.passes(timedelta(seconds=5))

        assert [dead.ask(dead.fails) for _ in range(100)] == ["otherwise"] * 100
        assert (dead.calls, dead.breaker.state) == (1, DEGRADED)

    def test_is_closed_by_a_probe_that_succeeds(self, dead: Helper, clock: Clock) -> None:
        clock.passes(timedelta(seconds=5))

        assert [dead.ask(dead.answers) for _ in range(3)] == ["answer"] * 3
        assert dead.breaker.state == OK

    def test_needs_as_many_failures_again_once_it_was_closed(self, dead: Helper, clock: Clock) -> None:
        clock.passes(timedelta(seconds=5))
        dead.ask(dead.answers)

        for _ in range(2):
            dead.ask(dead.fails)

        assert dead.breaker.state == OK

    def test_lets_nobody_pass_while_a_probe_is_under_way(self, dead: Helper, clock: Clock) -> None:
        begun, goes_on = Event(), Event()

        def hangs() -> str:
            begun.set()
            assert goes_on.wait(10)
            return dead.answers()

        clock.passes(timedelta(seconds=5))
        with ThreadPoolExecutor() as pool:
            probe = pool.submit(dead.ask, hangs)
            assert begun.wait(10)
            meanwhile = list(pool.map(dead.ask, [dead.answers] * 20))
            goes_on.set()

        assert (meanwhile, probe.result()) == (["otherwise"] * 20, "answer")
        assert dead.calls == 1

    def test_probes_again_after_a_probe_that_was_cut_off(self, dead: Helper, clock: Clock) -> None:
        def killed() -> str:
            raise SystemExit

        clock.passes(timedelta(seconds=5))
        with pytest.raises(SystemExit):
            dead.ask(killed)
        clock.passes(timedelta(seconds=5))

        assert dead.ask(dead.answers) == "answer"


class TestReport:
    def test_is_one_line_for_each_change(self, helper: Helper, clock: Clock, caplog: Any) -> None:
        caplog.set_level(logging.INFO, "idempotency")
        for _ in range(20):
            helper.ask(helper.fails)
            clock.passes(timedelta(seconds=1))
        clock.passes(timedelta(seconds=5))
        for _ in range(20):
            helper.ask(helper.answers)

        assert [record.getMessage() for record in caplog.records] == [
            "cache 'helper' fails (ConnectionError): it is left alone, and tried again",
            "cache 'helper' works again",
        ]

    @pytest.mark.usefixtures("others")
    def test_tells_of_all(self, clock: Clock) -> None:
        one, other = Helper(breakers.breaker("one")), Helper(breakers.breaker("other"))
        one.ask(one.answers)
        assert breakers.state() == OK

        for _ in range(breakers.FAILURES):
            other.ask(other.fails)

        assert breakers.breaker("other") is other.breaker
        assert breakers.state() == DEGRADED
