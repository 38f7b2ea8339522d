"""Thousands of deliveries, while workers, relays, the publisher and the broker are killed."""

import os
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from uuid import UUID, uuid5

import pytest
import redis
from celery import Celery
from kombu import Queue

from tests.campaigns import rounds
from tests.messages import publishing
from tests.messages.conftest import MARIADB, RABBITMQ, REDIS
from tests.messages.crews import BROKERS, QUEUE, Crew, DurableRedis, Member
from tests.processes import Templates
from tests.scenarios.gates import Gate

SEED = int(os.environ.get("SEED", "20250101"))
WORKERS = rounds(short=2, full=4)
RELAYS = rounds(short=1, full=2)
ORDERS = {"postgresql": rounds(short=100, full=2000), "mariadb": rounds(short=60, full=600)}
KILLS = {"postgresql": rounds(short=3, full=24), "mariadb": rounds(short=3, full=10)}
OUTAGE = {"postgresql": rounds(short=1, full=5), "mariadb": rounds(short=1, full=2)}
"""How many of the kills happen while the broker is down."""

EVERY = rounds(short=2, full=4)
"""Seconds between two kills."""

PATIENCE = 600.0
"""Seconds until what is left must be done, on a machine with other work."""


@dataclass
class Campaign:
    """One worker after the other is killed, now and then somebody else too, in the middle the broker."""

    crew: Crew
    chance: random.Random
    kills: Counter[str] = field(default_factory=Counter)
    publisher: Member = field(init=False)
    lost: int = 0

    def begin(self, *, orders: int, over: float) -> None:
        """Return when the workers work; the orders are made over about so many seconds."""
        self.publisher = self.crew.publisher(orders=orders, pause=over / orders)
        for member in (*map(self.crew.worker, range(WORKERS)), *map(self.crew.relay, range(RELAYS))):
            member.start()
        wait_for(self.crew.is_ready, "no workers")
        self.publisher.start()

    def kill_all(self, kills: int, *, outage: int) -> None:
        """Kill a worker now and again, so many times; the broker is down for ``outage`` of them."""
        down, up = kills // 3, kills // 3 + outage
        for number in range(kills):
            if number == down:
                self.crew.broker.stop()
            self.kill("worker", self.chance.choice(self.crew.workers))
            if number % 3 == 1:
                self.kill("relay", self.chance.choice(self.crew.relays))
            if number % 5 == 2 and self.publisher.is_running:
                self.kill("publisher", self.publisher)
            sleep(EVERY * self.chance.uniform(0.75, 1.25))
            if number == up - 1:
                self.crew.broker.start()
                self.crew.broker.wait()

    def kill(self, what: str, member: Member) -> None:
        member.kill()
        member.start()
        self.kills[what] += 1

    def settle(self) -> None:
        """Let the crew finish, and end it when nothing is left: each copy has had its chance."""
        wait_for(lambda: not self.publisher.is_running, "the publisher works")
        wait_for(lambda: not self.crew.messages("state = 'PENDING'"), "messages in the outbox")
        while True:
            wait_for(self.crew.is_idle, "messages at the broker")
            self.crew.stop_workers()  # on AMQP only this shows what they had in hand
            if not self.crew.broker.left():
                return
            for worker in self.crew.workers:
                worker.start()

    def send_again(self) -> None:
        """Send from the outbox what the broker lost on its way to a worker; nothing else is missing."""
        messages = self.messages()
        missing = messages.keys() - set(self.crew.tasks("succeeded"))
        assert missing <= self.crew.broker.lost()
        self.lost = len(missing)
        if missing:
            self.crew.send_again({messages[task] for task in missing})
            for worker in self.crew.workers:
                worker.start()
            self.settle()

    def messages(self) -> dict[str, UUID]:
        """The messages by the ids of the tasks that they are sent as."""
        return {
            str(uuid5(message, route)): message
            for topic, routes in publishing.ROUTES.items()
            for message in self.crew.messages(f"topic = '{topic}'")
            for route in routes
        }

    def check(self, *, orders: int) -> None:
        """Each order once, whatever was delivered, killed and rolled back; none that was not made."""
        numbers = {f"C-{number}": number for number in range(orders)}
        values = self.crew.values
        assert difference(values("SELECT name FROM lab_counter"), numbers) == {}
        assert Counter(values("SELECT state FROM idempotency_outbox")) == {"SENT": orders}

        effects = [name.split(" by ") for name in values("SELECT name FROM lab_effect")]
        assert difference([order_no for order_no, _ in effects], numbers) == {}
        assert {UUID(message) for _, message in effects} == set(self.crew.messages())

        paid = [order_no for order_no, number in numbers.items() if number % 4 == 0]
        assert difference(values("SELECT order_no FROM rewards_coupon"), paid) == {}
        assert difference(values("SELECT order_no FROM rewards_pointsentry"), paid) == {}
        points = sum(publishing.amount(numbers[order_no]) // 100 for order_no in paid)
        assert sum(values("SELECT points FROM rewards_balance")) == points

    def report(self) -> str:
        times = Counter(self.crew.tasks("received"))
        return (
            f"{len(times)} tasks, {times.total()} deliveries, at most {max(times.values())} of one; "
            f"killed: {dict(self.kills)}; tasks of which the broker lost a delivery: "
            f"{len(self.crew.broker.lost())}, the only one: {self.lost}"
        )


def wait_for(condition: Callable[[], bool], otherwise: str) -> None:
    end = monotonic() + PATIENCE
    while not condition():
        assert monotonic() < end, otherwise
        sleep(0.2)


def difference(found: Collection[str], wanted: Collection[str]) -> dict[str, int]:
    """Return what was done too often (above zero), or is missing (below)."""
    counts = Counter(found)
    counts.subtract(list(wanted))
    return {name: count for name, count in counts.items() if count}


@pytest.fixture
def crew(request: pytest.FixtureRequest, templates: Templates, tmp_path: Path) -> Iterator[Crew]:
    kind, vendor = request.param
    with ExitStack() as at_end:
        database = templates.fresh(vendor=vendor, settings="tests.settings")
        at_end.callback(database.drop)
        broker = BROKERS[kind]()
        broker.start()
        at_end.callback(broker.stop)
        broker.wait()
        crew = Crew(broker=broker, vendor=vendor, database=database, files=tmp_path)
        at_end.callback(crew.kill)
        yield crew


@pytest.mark.campaign
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("crew", [RABBITMQ, REDIS, MARIADB], indirect=True)
class TestCampaign:
    def test_does_for_each_message_what_it_asks_for_once(self, crew: Crew) -> None:
        orders, kills, outage = ORDERS[crew.vendor], KILLS[crew.vendor], OUTAGE[crew.vendor]
        campaign = Campaign(crew, chance=random.Random(SEED))
        campaign.begin(orders=orders, over=kills * EVERY)
        campaign.kill_all(kills, outage=outage)
        campaign.settle()
        campaign.send_again()

        print(campaign.report())  # noqa: T201
        campaign.check(orders=orders)
        assert campaign.kills["worker"] == kills


@pytest.mark.timeout(600)
class TestKilledRelay:
    @pytest.mark.parametrize("crew", [REDIS, RABBITMQ], indirect=True)
    def test_between_sending_and_marking_has_the_message_sent_again_and_dropped(
        self, crew: Crew, gate: Gate
    ) -> None:
        noted = partial(crew.tasks, name="campaign.note")
        port = str(gate.listener.getsockname()[1])
        crew.env = {"TEST_SENDER": "tests.messages.standing.send", "TEST_GATE": port}
        gate.listener.settimeout(PATIENCE)
        for member in (crew.worker(0), crew.publisher(orders=1, pause=0)):
            member.start()
        wait_for(lambda: crew.is_ready() and bool(crew.messages()), "no worker, or no message")
        crew.relay(0).start()
        held = gate.wait()
        wait_for(lambda: len(noted("succeeded")) == 1, "the first is not taken")
        held.kill()
        assert crew.values("SELECT state FROM idempotency_outbox") == ["PENDING"]

        crew.relay(1).start()
        gate.wait().release()
        wait_for(lambda: len(noted("succeeded")) == 2, "the second is not taken")
        wait_for(lambda: crew.values("SELECT state FROM idempotency_outbox") == ["SENT"], "it is not marked")
        assert len(crew.values("SELECT name FROM lab_effect")) == 1
        assert len(set(noted("received"))) == 1


class TestLost:
    def test_is_what_was_taken_off_the_queue_and_not_noted(self) -> None:
        broker = DurableRedis()
        broker.start()
        broker.wait()
        app = Celery(broker=broker.url, set_as_current=False)
        ids = [app.send_task("lab.work", queue=QUEUE).id for _ in range(3)]
        with redis.Redis.from_url(broker.url) as client:
            client.brpop([QUEUE])
        with app.connection_for_read() as connection:
            noted = Queue(QUEUE, channel=connection.channel()).get()

        assert broker.lost() == {ids[0]}
        assert noted.headers["id"] == ids[1]
        assert broker.left() == 2
        broker.stop()
