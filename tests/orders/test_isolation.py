"""Under REPEATABLE READ, where a transaction does not see what its rivals commit."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth import get_user_model
from django.db import connections, transaction
from django.utils import timezone

from orders.models import Order, Status
from tests.processes import WebServer
from tests.servers.private import wait_until
from tests.shopping import http_client, request_body

SETTINGS = "config.settings"
OPTIONS = {"mariadb": "isolation_level=repeatable%20read", "postgresql": "isolation_level=3"}

CUP = [{"sku": "CUP-010", "quantity": 1}]


@pytest.fixture(params=[pytest.param(name, marks=getattr(pytest.mark, name)) for name in OPTIONS])
def server(request, templates, tmp_path):
    fresh = templates.fresh(vendor=request.param, settings=SETTINGS)
    env = {
        "DATABASE_URL": f"{fresh.url}?{OPTIONS[request.param]}",
        "ATOMIC_REQUESTS": "1",  # the user is read first, and that is the snapshot
        "DEMO_PAUSES": str(tmp_path),
    }
    size = {"workers": 1, "threads": 8}
    log = tmp_path / "server.log"
    server = WebServer(database=fresh, app="config.wsgi", settings=SETTINGS, env=env, log=log, **size)
    server.start()
    yield server
    server.stop()
    fresh.drop()


def post(server, *, pause_name=None, **members):
    headers = {"X-Demo-Pause": "1", "X-Demo-Pause-Name": pause_name} if pause_name else {}
    with http_client(server.url) as client:
        return client.post("/api/orders", json=request_body(client_order_no="C", **members), headers=headers)


class TestRepeatableRead:
    """STO-01, STO-02"""

    @pytest.mark.parametrize(("members", "status"), [({}, 200), ({"lines": CUP}, 422)])
    def test_a_rival_gets_what_was_committed_behind_its_snapshot(self, server, tmp_path, members, status):
        with ThreadPoolExecutor() as pool:
            first = pool.submit(post, server, pause_name="first")
            wait_until((tmp_path / "first").read_text, alive=lambda: not first.done())
            rival = post(server, **members)
        assert first.result().status_code == 201
        if "mysql" in server.database_url:
            assert rival.status_code == status
        else:  # there is no reading past a snapshot of PostgreSQL
            assert (rival.status_code, rival.json()["code"]) == (409, "operation_in_progress")
        assert (post(server).status_code, server.scalar("SELECT COUNT(*) FROM orders_order")) == (200, 1)


@pytest.mark.mariadb
@pytest.mark.django_db(transaction=True, databases="__all__")
class TestTransitionUnderRepeatableRead:
    """STO-01"""

    @pytest.fixture
    def rows(self):
        user = get_user_model().objects.using("mariadb").create(username="alice")
        orders = Order.objects.using("mariadb")
        order = orders.create(user=user, order_no="ORD1", amount_minor=1, created_at=timezone.now())
        with connections["mariadb"].cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        yield orders.filter(pk=order.pk)
        connections["mariadb"].close()

    def test_sees_a_rivals_move_behind_its_snapshot(self, rows):
        with transaction.atomic(using="mariadb"):
            assert rows.get().status == Status.PENDING
            assert self.rival(rows) is True
            assert rows.transition(to=Status.CANCELLED) is False

    def rival(self, rows):
        def move():
            try:
                return rows.transition(to=Status.CANCELLED)
            finally:
                connections["mariadb"].close()

        with ThreadPoolExecutor(1) as pool:
            return pool.submit(move).result()
