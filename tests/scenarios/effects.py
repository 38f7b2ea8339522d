"""What a server did, counted in its database."""

from dataclasses import dataclass

from tests.processes import WebServer


@dataclass(frozen=True, kw_only=True)
class Effects:
    """So many orders, records and lines in the stock's ledger, and pieces taken."""

    orders: int = 0
    records: int = 0
    movements: int = 0
    taken: int = 0

    def __sub__(self, before: "Effects") -> "Effects":
        return Effects(**{name: value - getattr(before, name) for name, value in vars(self).items()})


ONE_ORDER = Effects(orders=1, records=1, movements=1, taken=1)
ONE_EFFECT = Effects(records=1, movements=1, taken=1)
NOTHING = Effects()


def effects(server: WebServer) -> Effects:
    """Everything so far; the difference of two is what happened in between."""
    return Effects(
        orders=server.scalar("SELECT count(*) FROM orders_order"),
        records=server.scalar("SELECT count(*) FROM idempotency_record"),
        movements=server.scalar("SELECT count(*) FROM stock_stockmovement"),
        taken=-server.scalar("SELECT sum(on_hand) FROM stock_stockitem"),
    )


def execute(server: WebServer, statement: str) -> None:
    connection = server.connect()
    try:
        connection.cursor().execute(statement)
    finally:
        connection.close()


def stock_up(server: WebServer) -> None:
    """Have more than any test can sell."""
    execute(server, "UPDATE stock_stockitem SET on_hand = 1000000")


def expire(server: WebServer, key: str) -> None:
    """Let the record of *key* have expired years ago."""
    execute(
        server,
        f"UPDATE idempotency_record SET expires_at = '2020-01-01 00:00:00' WHERE label LIKE '%{key}'",
    )
