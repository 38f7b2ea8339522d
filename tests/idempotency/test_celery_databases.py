"""Tasks whose database goes away, or whose rivals win: the message comes again, with or without a key."""

import socket
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from celery import Celery
from django.db import DatabaseError, OperationalError, connections, transaction

from idempotency.celery import IdempotentTask
from idempotency.exceptions import OperationInProgress, StoreUnavailable
from idempotency.leased import Claim
from tests.lab import effects
from tests.lab.deliveries import deliver, state, waiting
from tests.lab.effects import do
from tests.lab.models import Effect
from tests.lab.operations import WITH_RIVALS, Lab, end_connection, lab_db, on

pytestmark = [lab_db, pytest.mark.filterwarnings("ignore:Exception ignored")]
KEYS = pytest.mark.parametrize("key", ["message_id", None])


@pytest.fixture(autouse=True)
def records_beside_the_work(database: str, settings: Any) -> None:
    settings.IDEMPOTENCY_DATABASE = database


class Troubled:
    """A task that meets its trouble the first time only."""

    def __init__(self, app: Celery, trouble: Callable[[], Any], **options: Any) -> None:
        self.app, self.trouble = app, [trouble]

        @app.task(base=IdempotentTask, shared=False, name="lab.troubled", **options)
        def troubled(message_id: str) -> None:
            if self.trouble:
                self.trouble.pop()()
            do("done")

        self.task = troubled

    def is_done_when_it_comes_again(self) -> bool:
        """Deliver it, and what became of the message: it must have stepped aside, with nothing done."""
        first = state(deliver(self.task, "A"))
        after_first = effects.done()
        (again,) = waiting(self.app)
        second = state(deliver(self.task, *again.payload[0]))
        return (first, after_first, second, effects.done()) == ("IGNORED", [], None, ["done"])

    def fails(self) -> bool:
        return state(deliver(self.task, "A")) == "FAILURE" and waiting(self.app) == []


def lose(lab: Lab) -> None:
    """Have the server end the connection, then use it."""
    end_connection(lab)
    do("more")


def cut(lab: Lab) -> None:
    """Lose the way to the server, which says nothing then; use it."""
    do("before")
    with socket.socket(fileno=socket.dup(lab.connection.connection.fileno())) as way:
        way.shutdown(socket.SHUT_RDWR)
    do("more")


def atomically(lab: Lab, trouble: Callable[[Lab], None]) -> None:
    with transaction.atomic(lab.database):
        trouble(lab)


def wrapped(lab: Lab) -> None:
    try:
        lose(lab)
    except DatabaseError as error:
        raise ValueError("could not do it") from error


def covered(lab: Lab) -> None:
    """Raise something else in its stead, as a careless handler does."""
    try:
        lose(lab)
    except DatabaseError:
        raise ValueError("could not do it")  # noqa: B904


class TestLostConnection:
    @KEYS
    @WITH_RIVALS
    @pytest.mark.parametrize("trouble", [lose, wrapped, covered])
    def test_brings_the_message_again(
        self, app: Celery, lab: Lab, key: str | None, trouble: Callable[[Lab], None]
    ) -> None:
        assert Troubled(app, lambda: trouble(lab), key=key).is_done_when_it_comes_again()

    @KEYS
    @WITH_RIVALS
    def test_in_a_transaction_of_the_tasks_own_brings_it_again(
        self, app: Celery, lab: Lab, key: str | None
    ) -> None:
        assert Troubled(app, lambda: atomically(lab, lose), key=key).is_done_when_it_comes_again()

    @KEYS
    @on("postgresql")
    def test_without_a_word_of_the_server_brings_it_again(
        self, app: Celery, lab: Lab, key: str | None
    ) -> None:
        trouble = lambda: atomically(lab, cut)  # noqa: E731
        assert Troubled(app, trouble, key=key).is_done_when_it_comes_again()

    @on("postgresql")
    def test_in_a_leased_task_brings_it_again(self, app: Celery, lab: Lab) -> None:
        @app.task(base=IdempotentTask, shared=False, name="lab.text", key="message_id", lease=timedelta(1))
        def text(message_id: str, *, claim: Claim) -> None:
            claim.call("send", lambda key: atomically(lab, cut))

        assert state(deliver(text, "A")) == "IGNORED"
        assert len(waiting(app)) == 1
        assert effects.done() == []

    @KEYS
    @WITH_RIVALS
    @pytest.mark.parametrize("address", [{"HOST": "127.0.0.1", "PORT": "1"}, {"NAME": "nowhere"}])
    def test_that_could_not_be_made_brings_it_again(
        self,
        app: Celery,
        lab: Lab,
        key: str | None,
        monkeypatch: pytest.MonkeyPatch,
        address: dict[str, str],
    ) -> None:
        with monkeypatch.context() as patch:
            for part, value in address.items():
                patch.setitem(lab.connection.settings_dict, part, value)
            lab.connection.close()
            task = Troubled(app, lambda: None, key=key)
            assert state(deliver(task.task, "A")) == "IGNORED"

        (again,) = waiting(app)
        assert state(deliver(task.task, *again.payload[0])) is None
        assert effects.done() == ["done"]

    @WITH_RIVALS
    def test_is_told_to_who_calls_directly(self, app: Celery, lab: Lab) -> None:
        task = Troubled(app, lambda: lose(lab))
        with pytest.raises(StoreUnavailable):
            task.task("A")
        task.task("A")

        assert (effects.done(), waiting(app)) == (["done"], [])


class TestConflict:
    @KEYS
    @pytest.mark.parametrize("is_wrapped", [True, False])
    @on("postgresql")
    def test_does_not_lose_the_message(
        self, app: Celery, lab: Lab, key: str | None, is_wrapped: bool
    ) -> None:
        Effect.objects.using(lab.database).create(name="counted")

        def trouble() -> None:
            try:
                lose_to_rival(lab)
            except OperationalError as error:
                if is_wrapped:
                    raise ValueError("could not do it") from error
                raise

        task = Troubled(app, trouble, key=key)
        traced = deliver(task.task, "A")
        for again in waiting(app):
            traced = deliver(task.task, *again.payload[0])

        assert state(traced) is None
        assert sorted(effects.done()) == ["done", "won"]

    @on("postgresql")
    def test_with_a_key_is_run_again_at_once(self, app: Celery, lab: Lab) -> None:
        Effect.objects.using(lab.database).create(name="counted")
        task = Troubled(app, lambda: lose_to_rival(lab), key="message_id")

        assert state(deliver(task.task, "A")) is None
        assert sorted(effects.done()) == ["done", "won"]
        assert waiting(app) == []

    @on("postgresql")
    def test_is_told_to_who_calls_directly(self, app: Celery, lab: Lab) -> None:
        Effect.objects.using(lab.database).create(name="counted")
        task = Troubled(app, lambda: lose_to_rival(lab))

        with pytest.raises(OperationInProgress):
            task.task("A")
        assert effects.done() == ["won"]


def lose_to_rival(lab: Lab) -> None:
    """Change a row that somebody else has changed since we began to look."""
    rival = connections.create_connection(lab.database)
    ours = lab.connection.copy()
    try:
        with transaction_of(ours) as mine, rival.cursor() as theirs:
            mine.execute("SELECT name FROM lab_effect")
            theirs.execute("UPDATE lab_effect SET name = 'won'")
            mine.execute("UPDATE lab_effect SET name = 'lost'")
    finally:
        ours.close()
        rival.close()


class transaction_of:  # noqa: N801
    def __init__(self, connection: Any) -> None:
        self.cursor = connection.cursor()

    def __enter__(self) -> Any:
        self.cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        return self.cursor

    def __exit__(self, *error: object) -> None:
        self.cursor.execute("ROLLBACK")


class TestMistake:
    @KEYS
    def test_fails(self, app: Celery, lab: Lab, key: str | None) -> None:
        def trouble() -> None:
            with lab.connection.cursor() as cursor:
                cursor.execute("SELECT * FROM nowhere")

        assert Troubled(app, trouble, key=key).fails()
        assert effects.done() == []

    @KEYS
    def test_of_a_task_that_closes_its_connection_fails(self, app: Celery, lab: Lab, key: str | None) -> None:
        def trouble() -> None:
            try:
                with lab.connection.cursor() as cursor:
                    cursor.execute("SELECT * FROM nowhere")
            finally:
                lab.connection.close()

        assert Troubled(app, trouble, key=key).fails()
        assert effects.done() == []

    @KEYS
    def test_that_only_looks_like_a_databases_fails(self, app: Celery, lab: Lab, key: str | None) -> None:
        def trouble() -> None:
            raise OperationalError("the task's own")

        lab.connection.close()
        assert Troubled(app, trouble, key=key).fails()
        assert effects.done() == []

    @WITH_RIVALS
    def test_after_the_database_came_back_fails(self, app: Celery, lab: Lab) -> None:
        """A lost connection that the task got over is no reason for what it raises later."""

        def trouble() -> None:
            try:
                lose(lab)
            except DatabaseError:
                lab.connection.close()
            do("got over it")
            raise ValueError("no")

        assert Troubled(app, trouble).fails()
