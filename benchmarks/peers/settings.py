import os
from importlib import import_module

from benchmarks.project.settings import *  # noqa: F403

ADAPTER = import_module(f"benchmarks.peers.adapters.{os.environ['PEER']}")
ATTEMPTS = os.environ["ATTEMPTS"]
ROOT_URLCONF = "benchmarks.peers.urls"
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": os.environ["REDIS_URL"],
    },
}
ADAPTER.configure(globals())
