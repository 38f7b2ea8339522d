"""Its REST framework mixin on Redis, with the user as the scope."""

from collections.abc import Callable
from typing import Any

NAME = "idemkit 1.0.2 (Redis)"
REQUIREMENTS = ("idemkit[redis]==1.0.2", "Django>=5.2,<5.3")


def configure(settings: dict[str, Any]) -> None:
    pass


def view(make: Callable[..., Any]) -> Any:
    from django.conf import settings
    from idemkit import HttpConfig, RedisBackend
    from idemkit.contrib.drf import idempotent_view

    backend = RedisBackend.from_url(settings.CACHES["default"]["LOCATION"])
    config = HttpConfig(scope=lambda request: str(request.user.pk))
    return make(idempotent_view(backend=backend, config=config))
