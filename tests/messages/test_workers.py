"""Real workers on real brokers: delivered again, side by side, killed and cut off."""

from collections.abc import Callable
from uuid import uuid4

import pytest

from tests.messages.conftest import MARIADB, RABBITMQ, REDIS, ProxiedWorker
from tests.scenarios.gates import Gate
from tests.workers import Worker

everywhere = pytest.mark.parametrize("worker", [REDIS, RABBITMQ, MARIADB], indirect=True)
on_each_broker = pytest.mark.parametrize("worker", [REDIS, RABBITMQ], indirect=True)
on_redis = pytest.mark.parametrize("worker", [REDIS], indirect=True)
on_rabbitmq = pytest.mark.parametrize("worker", [RABBITMQ], indirect=True)


@pytest.fixture
def message() -> str:
    """A message's number."""
    return str(uuid4())


def port(gate: Gate) -> int:
    return int(gate.listener.getsockname()[1])


def ended(worker: Worker, task_id: str, times: int = 1) -> Callable[[], bool]:
    return lambda: worker.lines(f"[{task_id}] succeeded") >= times


class TestRepeat:
    @everywhere
    def test_after_the_end_is_acknowledged_with_the_first_result(self, worker: Worker, message: str) -> None:
        first = worker.send("lab.work", message_id=message)
        worker.wait_for(ended(worker, first))
        kept = worker.outcomes("lab.work", message)
        worker.send("lab.work", task_id=first, message_id=message)

        worker.wait_for(ended(worker, first, times=2))
        assert worker.done(message) == [f"worked on {message}"]
        assert worker.outcomes("lab.work", message) == kept
        assert worker.lines(f"[{first}] succeeded", str(kept[0]["pid"])) == 2

    @everywhere
    def test_while_the_first_runs_steps_aside(self, worker: Worker, message: str, gate: Gate) -> None:
        first = worker.send("lab.work", message_id=message, gate=port(gate))
        held = gate.wait()
        second = worker.send("lab.work", message_id=message)
        worker.wait_for(lambda: worker.lines("lab.work steps aside", "operation_in_progress") >= 1)
        assert not ended(worker, second)()
        held.release()

        worker.wait_for(ended(worker, second))
        worker.wait_for(ended(worker, first))
        assert worker.done(message) == [f"worked on {message}"]

    @everywhere
    def test_by_another_producer_has_the_business_key_in_common(self, worker: Worker) -> None:
        order = str(uuid4())
        sent = [
            worker.send("lab.remind", message_id=str(uuid4()), kind="daily", order_no=order, day="2024-11-04")
            for _ in range(2)
        ]

        for task_id in sent:
            worker.wait_for(ended(worker, task_id))
        assert worker.done(order) == [f"reminded of {order}"]


class TestOwnRetry:
    @on_each_broker
    def test_is_no_repeat(self, worker: Worker, message: str) -> None:
        task_id = worker.send("lab.stumble", message_id=message)

        worker.wait_for(ended(worker, task_id))
        assert worker.done(message) == [f"tried {message} after 2"]
        assert worker.outcomes("lab.stumble", message) == [2]

    @on_each_broker
    def test_is_not_used_up_by_stepping_aside(self, worker: Worker, message: str, gate: Gate) -> None:
        worker.send("lab.stumble", message_id=message, gate=port(gate))
        held = gate.wait()
        before = worker.lines("lab.stumble steps aside")
        task_id = worker.send("lab.stumble", message_id=message)
        worker.wait_for(lambda: worker.lines("lab.stumble steps aside") >= before + 3)
        gate.listener.close()  # for a copy of the first, which Redis may have delivered
        held.release()

        worker.wait_for(ended(worker, task_id))
        assert worker.done(message) == [f"tried {message} after 2"]


class TestRedelivery:
    @on_redis
    def test_while_the_first_still_runs_does_nothing(self, worker: Worker, message: str, gate: Gate) -> None:
        task_id = worker.send("lab.work", message_id=message, gate=port(gate))
        held = gate.wait()
        before = worker.lines("lab.work steps aside")
        worker.wait_for(lambda: worker.lines("lab.work steps aside") >= before + 2)
        assert worker.lines(f"[{task_id}] received") >= 2
        held.release()

        worker.wait_for(ended(worker, task_id, times=2))
        assert worker.done(message) == [f"worked on {message}"]

    @on_redis
    def test_before_its_time_does_it_once(self, worker: Worker, message: str) -> None:
        task_id = worker.send("lab.work", message_id=message, countdown=5)

        worker.wait_for(ended(worker, task_id, times=2))
        assert worker.lines(f"[{task_id}] received") >= 2
        assert worker.done(message) == [f"worked on {message}"]

    @on_rabbitmq
    def test_because_the_connection_broke_before_the_acknowledgement_does_nothing(
        self, worker: ProxiedWorker, message: str, gate: Gate
    ) -> None:
        task_id = worker.send("lab.work", message_id=message, gate=port(gate))
        held = gate.wait()
        with worker.proxy.closed():
            held.release()
            worker.wait_for(ended(worker, task_id))

        worker.wait_for(ended(worker, task_id, times=2))
        assert worker.done(message) == [f"worked on {message}"]


class TestFailure:
    @on_each_broker
    def test_is_acknowledged_and_leaves_nothing(self, worker: Worker, message: str) -> None:
        task_id = worker.send("lab.work", message_id=message, fails=True)
        worker.wait_for(lambda: worker.lines(f"[{task_id}] raised unexpected") == 1)
        worker.restart()
        again = worker.send("lab.work", message_id=message)

        worker.wait_for(ended(worker, again))
        assert worker.lines(f"[{task_id}] received") == 1
        assert worker.done(message) == [f"worked on {message}"]


class TestKilledProcess:
    @everywhere
    def test_in_the_middle_has_its_work_done_by_another(
        self, worker: Worker, message: str, gate: Gate
    ) -> None:
        task_id = worker.send("lab.work", message_id=message, gate=port(gate))
        gate.wait().kill()
        gate.wait().release()

        worker.wait_for(ended(worker, task_id))
        assert worker.done(message) == [f"worked on {message}"]
        assert len(worker.outcomes("lab.work", message)) == 1

    @on_each_broker
    def test_by_its_time_limit_has_its_work_done_by_another(
        self, worker: Worker, message: str, gate: Gate
    ) -> None:
        task_id = worker.send("lab.limited", message_id=message, gate=port(gate))
        gate.wait()
        gate.wait().release()

        worker.wait_for(ended(worker, task_id))
        assert worker.lines("Hard time limit", task_id) == 1
        assert worker.done(message) == [f"worked on {message}"]

    @on_each_broker
    def test_after_the_provider_did_its_part_asks_again_with_the_same_key(
        self, worker: Worker, message: str, gate: Gate
    ) -> None:
        task_id = worker.send("lab.text", message_id=message, gate=port(gate))
        gate.wait()
        gate.wait().release()

        worker.wait_for(ended(worker, task_id))
        (key,) = worker.outcomes("lab.text", message)
        assert worker.done(message) == [
            f"sent {message} with {key}",
            f"asked for {message}",
            f"asked for {message}",
        ]


class TestKilledWorker:
    @on_each_broker
    def test_after_the_commit_has_done_it(self, worker: Worker, message: str, gate: Gate) -> None:
        task_id = worker.send("lab.work", message_id=message, gate_after_commit=port(gate))
        gate.wait()
        kept = worker.outcomes("lab.work", message)
        worker.kill()
        worker.start()

        worker.wait_for(ended(worker, task_id))
        assert worker.done(message) == [f"worked on {message}"]
        assert worker.outcomes("lab.work", message) == kept
        assert worker.lines(f"[{task_id}] succeeded", str(kept[0]["pid"])) == 1

    @on_each_broker
    def test_in_the_middle_loses_nothing(self, worker: Worker, message: str, gate: Gate) -> None:
        task_id = worker.send("lab.work", message_id=message, gate=port(gate))
        gate.wait()
        worker.kill()
        assert worker.done(message) == []
        worker.start()
        gate.wait().release()

        worker.wait_for(ended(worker, task_id))
        assert worker.done(message) == [f"worked on {message}"]
