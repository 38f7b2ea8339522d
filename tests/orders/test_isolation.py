"""Under REPEATABLE READ, where a transaction does not see what its rivals commit."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth import get_user_model
from django.db import connections, transaction
from django.utils import timezone

from orders.models import Order, Status
from tests.processes import WebServer
from tests.servers.private import wait_until
from tests.shopping import at_once, http_client, request_body

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


@pytest.mark.mariadb
@pytest.mark.parametrize("atomic", ["0", "1"])
class TestShopUnderRepeatableRead:
    """What is answered is what is there, also behind a snapshot."""

    @pytest.fixture
    def server(self, serve, sandbox, atomic):
        server = serve(database="mariadb", threads=16)
        server.stop()
        url = f"{server.database_url}?{OPTIONS['mariadb']}"
        server.env = {"DATABASE_URL": url, "ATOMIC_REQUESTS": atomic, "SANDBOX_URL": sandbox.url}
        server.start()
        return server

    def test_two_halves_given_back_at_once_are_all(self, server):
        with http_client(server.url) as client:
            for number in range(6):
                path = self.ordered(client, f"C{number}")
                assert client.post(f"{path}/pay", json={"method": "alipay"}).status_code == 200
                halves = [{"refund_no": no, "amount": "19.90"} for no in "ab"]
                answers = at_once(2, lambda index: client.post(f"{path}/refunds", json=halves[index]))  # noqa: B023
                assert [answer.status_code for answer in answers] == [201, 201]
                assert client.get(path).json()["data"]["status"] == "REFUNDED"

    def test_every_answer_to_cancel_says_cancelled(self, server):
        with http_client(server.url) as client:
            for number in range(4):
                path = self.ordered(client, f"C{number}")
                answers = at_once(8, lambda index: client.post(f"{path}/cancel"))  # noqa: B023
                assert {answer.status_code for answer in answers} <= {200, 409}
                told = {answer.json()["data"]["status"] for answer in answers if answer.is_success}
                assert told == {"CANCELLED"}

    def test_a_replay_behind_the_snapshot_is_no_failure(self, server):
        with http_client(server.url) as client:
            for number in range(12):
                headers = {"Idempotency-Key": f"k{number}"}
                answers = at_once(
                    12,
                    lambda index: client.post("/api/orders", json=request_body(), headers=headers),  # noqa: B023
                )
                assert {answer.status_code for answer in answers} <= {200, 201, 409}

    def ordered(self, client, number):
        data = client.post("/api/orders", json=request_body(client_order_no=number)).json()["data"]
        return f"/api/orders/{data['orderId']}"
