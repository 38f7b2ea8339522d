"""The processes of a campaign, and its broker: all of them can be killed, and come back."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import sleep
from typing import Any
from uuid import UUID

import psutil
import redis
from amqp.exceptions import NotFound
from kombu import Connection

from tests.databases import Database
from tests.messages import appendlogs
from tests.processes import ROOT, environment, manage
from tests.servers.private import spawn
from tests.servers.rabbitmq import RabbitMQ
from tests.servers.redis import Redis

QUEUE = "campaign"
QUIET = 2.0
"""Seconds: AMQP does not tell of messages that a worker has in hand; stopped now, it would return them."""

POOL = ("--pool", "prefork", "--concurrency", "1", "--loglevel", "INFO")


@dataclass(kw_only=True)
class Member:
    """One process, with the children that it has."""

    command: tuple[str, ...]
    env: dict[str, str]
    log: Path
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self) -> None:
        """Begin to start it. It ends with the thread that calls this."""
        with self.log.open("ab") as log:
            command = (sys.executable, *self.command)
            self.process = spawn(*command, end=signal.SIGKILL, cwd=ROOT, stdout=log, env=self.env)

    def is_a(self, kind: str) -> bool:
        return self.log.name.startswith(kind)

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def kill(self) -> None:
        """kill -9, the parent first."""
        children: list[psutil.Process] = []
        with suppress(psutil.NoSuchProcess):
            children = psutil.Process(self.process.pid).children(recursive=True)
        for process in (self.process, *children):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait()
        psutil.wait_procs(children, timeout=10)


class DurableRedis(Redis):
    """Has on its disk what it has answered for."""

    def command(self) -> list[str | Path]:
        disk = ("--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0")
        return [*super().command(), *disk]

    def lost(self) -> set[str]:
        """Return the ids of tasks of which a delivery was lost on its way to a worker."""
        return appendlogs.lost(self.home.path, queue=QUEUE)

    def left(self) -> int:
        """Count the messages in the queue, and those that a worker has or had."""
        with redis.Redis.from_url(self.url) as client:
            keys = [key for key in client.keys(f"{QUEUE}*") if client.type(key) == b"list"]
            return sum(int(client.llen(key)) for key in keys) + int(client.hlen("unacked"))


class DurableRabbitMQ(RabbitMQ):
    """Has on its disk what it has confirmed."""

    def lost(self) -> set[str]:
        return set()

    def left(self) -> int:
        """Count the messages in the queue, where no worker runs."""
        with Connection(self.url) as connection, suppress(NotFound):
            return int(connection.default_channel.queue_declare(QUEUE, passive=True).message_count)
        return 0


BROKERS: dict[str, type[Any]] = {"redis": DurableRedis, "rabbitmq": DurableRabbitMQ}


class Crew:
    """Workers, relays and a publisher on one broker and one database."""

    def __init__(self, *, broker: Any, vendor: str, database: Database, files: Path) -> None:
        self.broker = broker
        self.vendor = vendor
        self.database = database
        self.files = files
        self.env: dict[str, str] = {}
        self.members: list[Member] = []

    @property
    def workers(self) -> list[Member]:
        return [member for member in self.members if member.is_a("worker")]

    @property
    def relays(self) -> list[Member]:
        return [member for member in self.members if member.is_a("relay")]

    def worker(self, number: int) -> Member:
        alone = ("--without-gossip", "--without-mingle", "--hostname", f"campaign{number}@localhost")
        return self._member(f"worker{number}", "-m", "celery", "-A", "config", "worker", *POOL, *alone)

    def relay(self, number: int) -> Member:
        return self._member(f"relay{number}", "manage.py", "idempotency_relay", "--interval", "0.2")

    def publisher(self, *, orders: int, pause: float) -> Member:
        return self._member("publisher", "-m", "tests.messages.publishing", str(orders), str(pause))

    def _member(self, name: str, *command: str) -> Member:
        ours = {"BROKER_URL": self.broker.url, "TEST_QUEUE": QUEUE, "CELERY_SKIP_CHECKS": "1"}
        env = environment(database=self.database, settings="tests.messages.campaign_settings")
        self.members.append(Member(command=command, env=env | ours | self.env, log=self.files / name))
        return self.members[-1]

    def values(self, statement: str) -> list[Any]:
        """The first column of the rows of *statement*."""
        connection = self.database.connect()
        try:
            cursor = connection.cursor()
            cursor.execute(statement)
            return [row[0] for row in cursor.fetchall()]
        finally:
            connection.close()

    def messages(self, condition: str = "1 = 1") -> list[UUID]:
        """The ids of the outbox's messages."""
        found = self.values(f"SELECT message_id FROM idempotency_outbox WHERE {condition}")
        return [UUID(str(message)) for message in found]

    def send_again(self, messages: Iterable[UUID]) -> None:
        known = f"message_id__in={[str(message) for message in messages]}"
        again = f"from idempotency.models import OutboxMessage as O; O.objects.filter({known}).send_again()"
        manage("shell", "-c", again, database=self.database, settings="tests.settings")

    def tasks(self, state: str, *, name: str = "") -> list[str]:
        """The ids of the tasks that workers received, or that succeeded, as often as they did."""
        logged = re.compile(rf"Task {re.escape(name) or '[^[]+'}\[([0-9a-f-]+)\] {state}")
        return [task for worker in self.workers for task in logged.findall(worker.output())]

    def is_ready(self) -> bool:
        """Tell whether each worker has taken messages once."""
        return all(" ready." in worker.output() for worker in self.workers)

    def is_idle(self) -> bool:
        """Tell whether the queue is empty and the workers had nothing to log for a while."""
        before = [worker.output() for worker in self.workers]
        sleep(QUIET)
        return not self.broker.left() and before == [worker.output() for worker in self.workers]

    def stop_workers(self) -> None:
        """End them in order: what runs is finished."""
        for worker in self.workers:
            worker.process.terminate()
        for worker in self.workers:
            worker.process.wait(60)

    def kill(self) -> None:
        for member in self.members:
            if hasattr(member, "process"):
                member.kill()
