"""Under ASGI each request has a thread of its own; its connection to the database must end with it."""

import secrets
from urllib.parse import urlsplit

import pytest

from tests.processes import WebServer
from tests.shopping import at_once, http_client, request_body

LIMIT = 8
"""Connections that the server's role may have."""

CLIENTS = 3
"""At once: a connection may still be ending when the next one begins."""


@pytest.fixture
def server(templates, tmp_path):
    """uvicorn on PostgreSQL, as a role with few connections."""
    database = templates.fresh(vendor="postgresql", settings="config.settings")
    role, password = f"shop_{secrets.token_hex(4)}", secrets.token_hex(8)
    owner = database.connect()
    owner.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{password}' CONNECTION LIMIT {LIMIT}")
    for kind in ("TABLES", "SEQUENCES"):
        owner.execute(f"GRANT ALL ON ALL {kind} IN SCHEMA public TO {role}")
    address = urlsplit(database.url)
    where = address.netloc.rpartition("@")[2]
    server = WebServer(
        database=database,
        app="config.asgi",
        settings="config.settings",
        workers=1,
        threads=1,
        env={"DATABASE_URL": address._replace(netloc=f"{role}:{password}@{where}").geturl()},
        log=tmp_path / "asgi.log",
    )
    server.start()
    yield server, lambda: _connections(owner, role)
    server.stop()
    owner.execute(f"DROP OWNED BY {role}")
    owner.execute(f"DROP ROLE {role}")
    owner.close()
    database.drop()


def _connections(owner, role):
    return owner.execute("SELECT COUNT(*) FROM pg_stat_activity WHERE usename = %s", [role]).fetchone()[0]


class TestASGI:
    @pytest.mark.parametrize("clients", [1, CLIENTS])
    def test_ends_its_connections_however_many_requests_come(self, server, clients):
        server, connections = server

        def buy(client_number):
            """Order and read, again and again: what was answered, and how many connections there were."""
            seen = []
            with http_client(server.url) as client:
                for number in range(3 * LIMIT):
                    key = {"Idempotency-Key": f"{client_number}-{number}"}
                    ordered = client.post("/api/orders", json=request_body(("TEA-100", 1)), headers=key)
                    seen.append((ordered.status_code, client.get("/api/orders").status_code, connections()))
            return seen

        seen = [each for client in at_once(clients, buy) for each in client]
        assert {(ordered, read) for ordered, read, _ in seen} == {(201, 200)}
        assert max(number for *_, number in seen) <= LIMIT
        assert server.scalar("SELECT COUNT(*) FROM orders_order") == 3 * LIMIT * clients
