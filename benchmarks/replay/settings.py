import os

from benchmarks.project.settings import *  # noqa: F403
from benchmarks.project.settings import INSTALLED_APPS
from config.caches import cache

INSTALLED_APPS = [*INSTALLED_APPS, "idempotency"]
ROOT_URLCONF = "benchmarks.replay.urls"
CACHES = {"default": cache(""), "redis": cache(os.environ["REDIS_URL"])}
