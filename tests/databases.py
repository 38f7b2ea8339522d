"""Databases on the servers of the run, for processes that are not this one."""

import os
import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

import psycopg
import pymysql


@dataclass(frozen=True, kw_only=True)
class Database:
    """One database. ``connect`` gives a DB-API connection in autocommit."""

    name: str

    @property
    def url(self) -> str:
        raise NotImplementedError

    def create(self) -> None:
        raise NotImplementedError

    def copy_to(self, other: "Database") -> None:
        """Create *other* with all that is in here; nobody may be connected to this one."""
        raise NotImplementedError

    def drop(self) -> None:
        raise NotImplementedError

    def connect(self) -> Any:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class PostgreSQLDatabase(Database):
    variable: ClassVar[str] = "DATABASE_URL"

    @property
    def url(self) -> str:
        return urlsplit(os.environ[self.variable])._replace(path=f"/{self.name}").geturl()

    def create(self) -> None:
        self.administer(f'CREATE DATABASE "{self.name}"')

    def copy_to(self, other: Database) -> None:
        self.administer(f'CREATE DATABASE "{other.name}" TEMPLATE "{self.name}"')

    def drop(self) -> None:
        self.administer(f'DROP DATABASE IF EXISTS "{self.name}" WITH (FORCE)')

    def connect(self) -> Any:
        return psycopg.connect(self.url, autocommit=True)

    def administer(self, statement: str) -> None:
        with psycopg.connect(os.environ[self.variable], autocommit=True) as connection:
            connection.execute(statement)


@dataclass(frozen=True, kw_only=True)
class MariaDBDatabase(Database):
    variable: ClassVar[str] = "MARIADB_URL"

    @property
    def url(self) -> str:
        return urlsplit(os.environ[self.variable])._replace(path=f"/{self.name}").geturl()

    def create(self) -> None:
        self.administer(f"CREATE DATABASE `{self.name}` CHARACTER SET utf8mb4")

    def copy_to(self, other: Database) -> None:
        """Table by table, with keys and checks: the server has no templates."""
        other.create()
        with other.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET foreign_key_checks = 0")
            cursor.execute(f"SHOW TABLES FROM `{self.name}`")
            for (table,) in cursor.fetchall():
                cursor.execute(f"SHOW CREATE TABLE `{self.name}`.`{table}`")
                cursor.execute(cursor.fetchone()[1])
                cursor.execute(f"INSERT INTO `{table}` SELECT * FROM `{self.name}`.`{table}`")

    def drop(self) -> None:
        self.administer(f"DROP DATABASE IF EXISTS `{self.name}`")

    def connect(self) -> Any:
        return self.connection(database=self.name)

    def administer(self, statement: str) -> None:
        with self.connection() as connection, connection.cursor() as cursor:
            cursor.execute(statement)

    def connection(self, **options: Any) -> Any:
        parts = urlsplit(os.environ[self.variable])
        return pymysql.connect(
            host=parts.hostname,
            port=parts.port or 3306,
            user=unquote(parts.username or "root"),
            password=unquote(parts.password or ""),
            charset="utf8mb4",
            autocommit=True,
            **options,
        )


@dataclass(frozen=True, kw_only=True)
class SQLiteDatabase(Database):
    @property
    def url(self) -> str:
        return f"sqlite:///{self.path}"

    @property
    def path(self) -> Path:
        return Path(os.environ["TEST_FILES"], f"{self.name}.sqlite3")

    def create(self) -> None:
        self.path.touch()

    def copy_to(self, other: Database) -> None:
        shutil.copyfile(self.path, self.path.with_name(f"{other.name}.sqlite3"))

    def drop(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)

    def connect(self) -> Any:
        return sqlite3.connect(self.path, isolation_level=None, timeout=20)


VENDORS: dict[str, type[Database]] = {
    "postgresql": PostgreSQLDatabase,
    "mariadb": MariaDBDatabase,
    "sqlite": SQLiteDatabase,
}
