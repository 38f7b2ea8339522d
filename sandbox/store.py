"""What the providers remember: charges, refunds and texts. A unique index makes each once."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from threading import Lock
from typing import Any, Final
from uuid import uuid4

TABLES: Final = """
CREATE TABLE IF NOT EXISTS charge (
    provider TEXT NOT NULL, key TEXT NOT NULL, payment_no TEXT UNIQUE, order_no TEXT, amount_minor INTEGER,
    currency TEXT, state TEXT NOT NULL CHECK (state IN ('charged', 'declined', 'closed')), paid_at TEXT,
    UNIQUE (provider, key)
);
CREATE TABLE IF NOT EXISTS refund (
    provider TEXT NOT NULL, number TEXT NOT NULL, refund_no TEXT NOT NULL, payment_no TEXT NOT NULL,
    amount_minor INTEGER NOT NULL, UNIQUE (provider, number)
);
CREATE TABLE IF NOT EXISTS message (
    key TEXT NOT NULL UNIQUE, message_no TEXT UNIQUE, phone TEXT, template TEXT, params TEXT,
    state TEXT NOT NULL CHECK (state IN ('sent', 'declined', 'closed')), sent_at TEXT
);
"""


class Refused(Exception):
    """A definite no."""

    status = 402


class Store:
    """One SQLite file, written by one thread at a time."""

    def __init__(self, path: Path | None = None) -> None:
        self.lock = Lock()
        self.connection = sqlite3.connect(path or ":memory:", check_same_thread=False, isolation_level=None)
        self.connection.row_factory = sqlite3.Row
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.executescript(TABLES)

    def charge(
        self, *, provider: str, key: str, order_no: str, amount_minor: int, currency: str, decline: bool
    ) -> tuple[dict[str, Any], bool]:
        """Charge once for each key.

        :returns: the charge, and whether it is new.
        :raises Refused: when the key was declined or closed, now or before.
        """
        with self.writing() as execute:
            known = self._charge(provider, key)
            if known is None:
                values = [provider, key, f"{provider}_{uuid4().hex[:20]}", order_no, amount_minor, currency]
                state = "declined" if decline else "charged"
                now = datetime.now(UTC).isoformat()
                execute("INSERT INTO charge VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [*values, state, now])
            charge = self._charge(provider, key)
        return self._charged(charge), known is None

    def find(self, *, provider: str, key: str) -> dict[str, Any] | None:
        """Return what was charged under this key.

        :raises Refused: when it was declined or closed.
        """
        with self.lock:
            charge = self._charge(provider, key)
            return self._charged(charge) if charge else None

    def close(self, *, provider: str, key: str) -> dict[str, Any] | None:
        """Let nothing be charged under this key any more; return what has been."""
        with self.writing() as execute:
            execute(
                "INSERT INTO charge (provider, key, state) VALUES (?, ?, 'closed') ON CONFLICT DO NOTHING",
                [provider, key],
            )
            charge = self._charge(provider, key)
            return self._charged(charge) if charge and charge["state"] == "charged" else None

    def refund(
        self, *, provider: str, payment_no: str, number: str, amount_minor: int, currency: str, decline: bool
    ) -> str:
        """Give back once for each number; return the provider's own.

        :raises Refused: when it is more than is left, another currency, or the number has another amount.
        """
        with self.writing() as execute:
            known = self.one("SELECT * FROM refund WHERE provider = ? AND number = ?", [provider, number])
            if known:
                if (known["payment_no"], known["amount_minor"]) != (payment_no, amount_minor):
                    raise Refused("the number belongs to another refund")
                return str(known["refund_no"])
            if decline:
                raise Refused("declined")
            if amount_minor > self._left(provider, payment_no, currency):
                raise Refused("more than is left")
            refund_no = f"{provider}_r{uuid4().hex[:19]}"
            execute(
                "INSERT INTO refund VALUES (?, ?, ?, ?, ?)",
                [provider, number, refund_no, payment_no, amount_minor],
            )
            return refund_no

    def charges(self, *, order_no: str | None = None) -> list[dict[str, Any]]:
        """Return all that was charged, with what was given back of it."""
        with self.lock:
            charges = self.all(
                "SELECT * FROM charge WHERE state = 'charged' AND coalesce(order_no = ?, 1) ORDER BY rowid",
                [order_no],
            )
            refunds = self.all("SELECT * FROM refund ORDER BY payment_no, rowid", [])
        by_charge = {no: list(rows) for no, rows in groupby(refunds, key=lambda row: row["payment_no"])}
        return [{**charge, "refunds": by_charge.get(charge["payment_no"], [])} for charge in charges]

    def _charged(self, charge: dict[str, Any] | None) -> dict[str, Any]:
        if charge is None or charge["state"] != "charged":
            raise Refused("declined" if charge is None else charge["state"])
        return charge

    def _charge(self, provider: str, key: str) -> dict[str, Any] | None:
        return self.one("SELECT * FROM charge WHERE provider = ? AND key = ?", [provider, key])

    def _left(self, provider: str, payment_no: str, currency: str) -> int:
        charge = self.one(
            "SELECT amount_minor FROM charge WHERE provider = ? AND payment_no = ? AND currency = ? "
            "AND state = 'charged'",
            [provider, payment_no, currency],
        )
        back = self.one(
            "SELECT coalesce(sum(amount_minor), 0) AS sum FROM refund WHERE payment_no = ?", [payment_no]
        )
        return charge["amount_minor"] - back["sum"] if charge and back else 0

    def one(self, sql: str, values: list[Any]) -> dict[str, Any] | None:
        """Return the first row."""
        row = self.connection.execute(sql, values).fetchone()
        return dict(row) if row else None

    def all(self, sql: str, values: list[Any]) -> list[dict[str, Any]]:
        """Return every row."""
        return [dict(row) for row in self.connection.execute(sql, values)]

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """Write alone, all or nothing; the block gets what executes a statement."""
        with self.lock:
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection.execute
            except BaseException:
                self.connection.execute("ROLLBACK")
                raise
            self.connection.execute("COMMIT")
