"""Under REPEATABLE READ, where a transaction does not see what its rivals commit."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

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

    def test_a_rival_sees_that_the_order_is_cancelled(self, server):
        order_no = post(server).json()["data"]["orderId"]

        def cancel(_):
            with http_client(server.url) as client:
                return client.post(f"/api/orders/{order_no}/cancel")

        told = Counter((answer.status_code, answer.json()["code"]) for answer in at_once(8, cancel))
        if "mysql" in server.database_url:
            assert told == {(200, 200): 8}
        assert set(told) <= {(200, 200), (409, "operation_in_progress")}
        assert server.scalar("SELECT on_hand FROM stock_stockitem WHERE sku = 'TEA-100'") == 100
