"""The cache fails, lies or is none: it costs a look in the database, and changes no answer."""

import pickle
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import caches
from django.core.exceptions import ImproperlyConfigured

from idempotency import breakers, caching, replays
from idempotency.values import Outcome
from tests.lab.caches import Server, cached, every_kind, every_redis
from tests.lab.operations import Lab, lab_db, on

pytestmark = pytest.mark.usefixtures("replay_cache")

HOUR = timedelta(hours=1)


exploded: list[str] = []


class Bomb:
    """What runs when somebody unpickles it."""

    def __reduce__(self) -> Any:
        return explode, ()


def explode() -> None:
    exploded.append("unpickled")


FORGERIES: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda entry: b"",
    "text": lambda entry: b"hello",
    "a number": lambda entry: b"42",
    "a pickle": lambda entry: pickle.dumps(Bomb()),
    "no seal": lambda entry: entry[replays.SEAL :],
    "torn": lambda entry: entry[:-1],
    "another status": lambda entry: entry.replace(b"201", b"500"),
    "another body": lambda entry: entry[:-1] + b"!",
    "a header more": lambda entry: entry.replace(b'"headers": []', b'"headers": [["X\\n", "1"]]'),
}


@lab_db
@on("sqlite")
class TestForgery:
    """Whoever can write to Redis can make a miss, and nothing else."""

    @pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
    @every_redis
    def test_is_a_miss(self, lab: Lab, redis: Server, forge: Callable[[bytes], bytes]) -> None:
        first = lab.run(handler=lambda: (None, Outcome(status=201, body=b"answer")))
        with redis.client as client:
            (name,) = redis.names()
            assert client.get(name) != forge(client.get(name))
            client.set(name, forge(client.get(name)))

        assert cached(lab) is None
        assert lab.run().outcome == first.outcome
        assert exploded == []

    def test_of_another_type_is_a_miss(self, lab: Lab, redis: Server) -> None:
        lab.run()
        with redis.client as client:
            (name,) = redis.names()
            client.delete(name)
            client.rpush(name, "a list")

        assert lab.run().replayed

    def test_anothers_entry_is_a_miss(self, lab: Lab, redis: Server) -> None:
        lab.run("mine", handler=lab.handler("mine"))
        lab.run("theirs", handler=lab.handler("theirs"))
        mine, theirs = (redis.entry_name(lab.database, lab.operation(key)) for key in ("mine", "theirs"))
        with redis.client as client:
            client.set(mine, client.get(theirs))

        assert cached(lab, "mine") is None
        assert lab.run("mine").outcome == Outcome.of("mine")

    def test_an_entry_of_another_secret_is_a_miss(self, lab: Lab, settings: Any) -> None:
        lab.run()
        settings.SECRET_KEY = "another"

        assert cached(lab) is None
        assert lab.run().replayed

    @pytest.mark.parametrize("cache_kind", ["locmem"], indirect=True)
    def test_something_else_than_bytes_is_a_miss(self, lab: Lab) -> None:
        lab.run()
        caches["replays"].set(replays._name(lab.database, lab.operation()), {"status": 201})

        assert lab.run().replayed


@lab_db
class TestOutage:
    @every_redis
    def test_costs_a_look_in_the_database(self, lab: Lab, redis: Server) -> None:
        with redis.away():
            first, again = lab.run(), lab.run()

        assert (first.replayed, again.replayed, again.outcome) == (False, True, first.outcome)
        assert lab.done == ["done"]
        assert breakers.state() == breakers.DEGRADED

    @every_redis
    def test_that_hangs_is_given_up(self, lab: Lab, redis: Server) -> None:
        lab.run()
        with redis.hanging():
            assert [lab.run().replayed for _ in range(50)] == [True] * 50

        assert lab.done == ["done"]
        assert breakers.state() == breakers.DEGRADED

    def test_in_the_middle_changes_nothing(self, lab: Lab, redis: Server) -> None:
        lab.run(handler=lab.handler(then=redis.stop))
        redis.begin_again()
        breakers.reset()

        assert [lab.run().replayed for _ in range(2)] == [True] * 2
        assert cached(lab) is not None
        assert lab.done == ["done"]

    def test_of_memory_changes_nothing(self, lab: Lab, redis: Server) -> None:
        with redis.client as client:
            client.config_set("maxmemory", 1)
            runs = [lab.run().replayed for _ in range(5)]
            client.config_set("maxmemory", 0)

        assert runs == [False] + [True] * 4
        assert lab.done == ["done"]


class TestKinds:
    def test_one_that_may_unpickle_is_refused(self, settings: Any, tmp_path: Any) -> None:
        file = {"BACKEND": "django.core.cache.backends.filebased.FileBasedCache", "LOCATION": tmp_path}
        settings.CACHES = {**settings.CACHES, "replays": file}

        with pytest.raises(ImproperlyConfigured, match="FileBasedCache"):
            caching.get("name")

    def test_none_does_nothing(self, settings: Any) -> None:
        settings.IDEMPOTENCY_CACHE = None

        assert (caching.get("name"), caching.add("name", b"", HOUR), caching.add("name", b"", HOUR)) == (
            None,
            True,
            True,
        )

    @every_kind
    def test_keep_bytes_for_a_while(self) -> None:
        caching.put("name", b"value", HOUR)
        seen = [caching.add("name", b"other", HOUR), caching.get("name")]
        caching.delete("name")
        seen += [caching.get("name"), caching.add("name", b"other", HOUR), caching.get("name")]

        assert seen == [False, b"value", None, True, b"other"]
