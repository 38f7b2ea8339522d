"""A database that goes away, at each moment."""

from typing import Any

import pytest
from django.db import OperationalError, connections
from django.http import HttpResponse
from django.test import RequestFactory

from idempotency import claims
from idempotency.decorators import idempotent_view
from idempotency.exceptions import StoreUnavailable
from idempotency.policies import Policy
from tests.lab.operations import WITH_RIVALS, Lab, lab_db

pytestmark = [lab_db, WITH_RIVALS, pytest.mark.filterwarnings("ignore:Exception ignored")]


def terminate(lab: Lab) -> None:
    """Have the server drop our connection, as an administrator or a restart does."""
    number, drop = {
        "postgresql": ("SELECT pg_backend_pid()", "SELECT pg_terminate_backend(%s, 5000)"),
        "mysql": ("SELECT connection_id()", "KILL %s"),
    }[lab.connection.vendor]
    with lab.connection.cursor() as cursor:
        cursor.execute(number)
        (process,) = cursor.fetchone()
    other = connections.create_connection(lab.database)
    try:
        with other.cursor() as cursor:
            cursor.execute(drop, [process])
    finally:
        other.close()


def nothing_happened(lab: Lab) -> bool:
    lab.connection.close()
    return lab.done == [] and lab.records.count() == 0


class TestConnectionLost:
    def test_before_the_claim(self, lab: Lab, heard: list[Any]) -> None:
        terminate(lab)

        with pytest.raises(StoreUnavailable):
            lab.run()

        assert heard == [("refused", lab.operation(), "store_unavailable")]
        assert nothing_happened(lab)
        assert not lab.run().replayed

    def test_in_the_handler(self, lab: Lab) -> None:
        """The view's own trouble, as without us."""
        with pytest.raises(OperationalError):
            lab.run(handler=lab.handler(then=lambda: (terminate(lab), lab.do("more"))))

        assert nothing_happened(lab)
        assert not lab.run().replayed

    def test_behind_the_handler(self, lab: Lab) -> None:
        with pytest.raises(StoreUnavailable):
            lab.run(handler=lab.handler(then=lambda: terminate(lab)))

        assert nothing_happened(lab)
        assert not lab.run().replayed

    def test_before_the_commit(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        kind = type(claims.claim(lab.connection.alias, lab.operation()))
        complete = kind.complete

        def complete_and_lose(*args: Any, **kwargs: Any) -> bool:
            completed = complete(*args, **kwargs)
            terminate(lab)
            return completed

        with monkeypatch.context() as patch:
            patch.setattr(kind, "complete", complete_and_lose)
            with pytest.raises(StoreUnavailable):
                lab.run()

        assert nothing_happened(lab)
        assert not lab.run().replayed

    def test_before_the_commits_answer(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        """In doubt: the effect is there, and only a repeat tells."""
        commit = lab.connection._commit

        def commit_and_lose() -> None:
            commit()
            raise OperationalError("server closed the connection unexpectedly")

        with monkeypatch.context() as patch:
            patch.setattr(lab.connection, "_commit", commit_and_lose)
            with pytest.raises(StoreUnavailable):
                lab.run()

        lab.connection.close()
        assert lab.run().replayed
        assert lab.done == ["done"]

    def test_inside_an_outer_transaction(self, lab: Lab) -> None:
        """Which rolls back, without an error of its own."""
        with lab.atomic():
            terminate(lab)
            with pytest.raises(StoreUnavailable):
                lab.run()

        assert nothing_happened(lab)


class TestAnswer:
    @pytest.mark.parametrize("atomic_request", [False, True])
    def test_says_to_come_again(self, lab: Lab, rf: RequestFactory, atomic_request: bool) -> None:
        def scope(request: Any) -> str:
            terminate(lab)
            return "lab"

        def work(request: Any) -> HttpResponse:
            lab.do("done")
            return HttpResponse(status=201)

        view = idempotent_view(Policy(using=lab.database), scope=scope)(work)
        view = lab.atomic()(view) if atomic_request else view

        answer = view(rf.post("/", headers={"Idempotency-Key": "key-1"}))

        assert (answer.status_code, answer["Retry-After"]) == (503, "1")
        assert b'"code": "store_unavailable"' in answer.content
        assert nothing_happened(lab)
