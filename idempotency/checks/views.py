"""The guarded views that the URL patterns lead to."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from django.core.checks import CheckMessage, Error, Tags, register
from django.urls import get_resolver

from idempotency.mixins import IdempotentMixin
from idempotency.policies import Policy

ANYBODY: Final = "AllowAny"


@dataclass(frozen=True)
class Route:
    """A view with the mixin, as one URL pattern or ``@action`` uses it."""

    view: type[Any]
    policy: Policy | None
    permissions: tuple[Any, ...]
    methods: frozenset[str]

    @property
    def is_guarded(self) -> bool:
        if _overrides(self.view, "get_idempotency_policy"):
            return True  # decided per request
        return self.policy is not None and not self.methods.isdisjoint(self.policy.methods)

    @property
    def admits_strangers(self) -> bool:
        """Whether anonymous callers come through, as far as that can be told without a request."""
        decides_itself = self.view.get_permissions.__module__ != "rest_framework.views"
        return not decides_itself and {_short_name(kind) for kind in self.permissions} <= {ANYBODY}


@register("idempotency", Tags.urls)
def check_scope(**kwargs: Any) -> list[CheckMessage]:
    """Two strangers with one key would get each other's answers; at run time they are refused."""
    views = [
        route.view
        for route in routes()
        if route.is_guarded and route.admits_strangers and not _overrides(route.view, "get_idempotency_scope")
    ]
    return [
        Error(
            "Anonymous callers are let in, and nothing says whose their keys are.",
            hint="Require authentication in permission_classes, override get_idempotency_scope(), "
            "or exempt the view with idempotency_policy = None.",
            obj=_name(view),
            id="idempotency.E006",
        )
        for view in dict.fromkeys(views)
    ]


def routes() -> list[Route]:
    """Return what the URL patterns lead to; nothing where they cannot be loaded."""
    try:
        callbacks = list(_callbacks(get_resolver().url_patterns))
    except Exception:  # noqa: BLE001  Django's own check tells what is wrong with them
        return []
    return [
        _route(callback)
        for callback in callbacks
        if issubclass(getattr(callback, "cls", object), IdempotentMixin)
    ]


def _callbacks(patterns: list[Any]) -> Iterator[Any]:
    for pattern in patterns:
        if hasattr(pattern, "url_patterns"):
            yield from _callbacks(pattern.url_patterns)
        else:
            yield pattern.callback


def _route(callback: Any) -> Route:
    view, options = callback.cls, callback.initkwargs
    handlers = [name for name in view.http_method_names if hasattr(view, name)]
    methods = getattr(callback, "actions", None) or handlers  # a viewset's router says which
    return Route(
        view=view,
        policy=options.get("idempotency_policy", view.idempotency_policy),
        permissions=tuple(options.get("permission_classes", getattr(view, "permission_classes", ()))),
        methods=frozenset(name.upper() for name in methods),
    )


def _overrides(view: type[Any], hook: str) -> bool:
    return getattr(view, hook) is not getattr(IdempotentMixin, hook)


def _name(kind: Any) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _short_name(permission: Any) -> str:
    return getattr(permission, "__name__", "")  # a composed one has none
