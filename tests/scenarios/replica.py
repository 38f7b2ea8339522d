"""A router that sends reads to a replica, which here lags behind for ever."""

from typing import Any


class ReplicaRouter:
    def db_for_read(self, model: type, **hints: Any) -> str:
        return "replica"

    def db_for_write(self, model: type, **hints: Any) -> str:
        return "default"

    def allow_relation(self, *objects: Any, **hints: Any) -> bool:
        return True
