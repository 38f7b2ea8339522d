"""A private MariaDB from this machine's binaries; no wheel brings one."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.servers.private import PrivateServer, Program, ServerFailed, installed

# Nothing has to survive, so nothing is flushed; locking and isolation are as they come.
OPTIONS = (
    "--bind-address=127.0.0.1",
    "--skip-name-resolve",
    "--skip-log-bin",
    "--max-connections=300",
    "--character-set-server=utf8mb4",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=0",
    "--innodb-buffer-pool-size=128M",
    "--innodb-log-file-size=64M",
    "--default-time-zone=+00:00",
)


class MariaDB(PrivateServer):
    name = "MariaDB"
    variable = "MARIADB_URL"
    users = ("mysql",)
    oldest = (10, 11)
    hint = "set MARIADB_URL or install mariadb-server"

    @classmethod
    def programs(cls) -> Iterator[Program]:
        yield from installed("mariadbd")

    @property
    def url(self) -> str:
        return f"mysql://root@127.0.0.1:{self.port}/mysql"

    @classmethod
    def probe(cls, url: str) -> str:
        import pymysql

        parts = urlsplit(url)
        connection = pymysql.connect(
            host=parts.hostname,
            port=parts.port or 3306,
            user=unquote(parts.username or "root"),
            password=unquote(parts.password or ""),
            connect_timeout=5,
        )
        with connection:
            return str(connection.get_server_info()).removeprefix("5.5.5-")

    def preparation_command(self) -> list[str | Path]:
        installer = next(installed("mariadb-install-db"), None)
        if not installer:
            raise ServerFailed(f"{self.program.path} is here, but no mariadb-install-db")
        return [
            installer.path,
            "--no-defaults",
            f"--datadir={self.data}",
            f"--tmpdir={self.home.path}",  # two set-ups at once must not meet in /tmp
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--skip-name-resolve",
            "--innodb-log-file-size=64M",
        ]

    def command(self) -> list[str | Path]:
        return [
            self.program.path,
            "--no-defaults",
            f"--datadir={self.data}",
            f"--tmpdir={self.home.path}",
            f"--port={self.port}",
            f"--socket={self.home.path / 'socket'}",
            f"--pid-file={self.home.path / 'pid'}",
            *OPTIONS,
        ]

    @property
    def data(self) -> Path:
        return self.home.path / "data"
