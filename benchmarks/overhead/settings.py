from benchmarks.project.settings import *  # noqa: F403
from benchmarks.project.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "idempotency"]
ROOT_URLCONF = "benchmarks.overhead.urls"
