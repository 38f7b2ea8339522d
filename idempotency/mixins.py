"""Django REST framework: views and viewsets that answer a repeat with the first answer."""

from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.datastructures import MultiValueDict
from django.views import View
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.request import Request
from rest_framework.views import APIView, set_rollback

from . import answers, bodies, engine, fingerprints, guards, http, leased
from .exceptions import IdempotencyError
from .policies import Policy
from .values import Operation, Outcome

Handler = Callable[..., HttpResponseBase]

if TYPE_CHECKING:
    _View = APIView
else:
    _View = object  # the view class comes behind the mixin


class IdempotentMixin(_View):
    """Make the POST and PATCH handlers of a view happen once for each ``Idempotency-Key``.

    List it before the view class. Authentication, permissions and throttling run first, each time. The
    handler's writes and its answer are committed together; an answer that is not worth keeping, and any
    exception, rolls the writes back and frees the key.
    """

    idempotency_policy: Policy | None = Policy()
    """``None`` exempts the view, or with ``@action(idempotency_policy=None)`` one action."""

    idempotency_claim: leased.Claim | None = None
    """Inside the handler of a policy with a ``lease``: its claim."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Refuse a class that lists the mixin behind the view, where no request would reach it."""
        super().__init_subclass__(**kwargs)
        order = cls.mro()
        if View in order and order.index(View) < order.index(IdempotentMixin):
            raise ImproperlyConfigured(
                f"{cls.__name__}: IdempotentMixin comes after the view class, so that it guards nothing. "
                f"List it first: class {cls.__name__}(IdempotentMixin, …)."
            )

    @classmethod
    def as_view(cls, *args: Any, **initkwargs: Any) -> Any:
        if not issubclass(cls, APIView):
            raise ImproperlyConfigured(
                f"{cls.__name__}: IdempotentMixin is for REST framework's views; use @idempotent_view here."
            )
        view = super().as_view(*args, **initkwargs)
        return http.exempt(view, initkwargs.get("idempotency_policy", cls.idempotency_policy))

    def get_idempotency_policy(self) -> Policy | None:
        """Return this request's policy. Called before the body is read: do not read it here."""
        return self.idempotency_policy

    def get_idempotency_key(self) -> str | None:
        """Return this request's key, or ``None`` where it has none.

        :raises KeyInvalid: when it is malformed.
        """
        return http.key(self.request._request)

    def get_idempotency_scope(self) -> str:
        """Return whose key it is; by default the user's.

        :raises ImproperlyConfigured: for an anonymous caller.
        """
        return http.scope(self.request)

    def get_idempotency_fingerprint(self, policy: Policy) -> bytes | None:
        """Return a digest of what is asked; ``None`` takes every request with the key for the same one."""
        return http.fingerprint(self.request._request, policy, partial(_content, self.request, policy))

    def get_idempotency_label(self, key: str) -> str:
        """Return the key as people shall see it in the admin."""
        return key

    def get_replay_response(self, outcome: Outcome) -> HttpResponseBase:
        """Answer a repeat; by default with the first answer."""
        return answers.replay(outcome)

    def check_idempotency_access(self) -> None:
        """Check before a replay that the caller may still see the object that a detail route names.

        A first run leaves that to the handler.
        """
        lookup = getattr(self, "lookup_url_kwarg", None) or getattr(self, "lookup_field", None)
        if lookup in self.kwargs and hasattr(self, "get_object"):
            self.get_object()

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        dispatch, policy = super().dispatch, self.idempotency_policy
        if policy is not None and request.method not in policy.methods:
            dispatch = http.give_back(dispatch, policy)
        return dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)  # 401, 403, 406 and 429 end here and touch no key
        policy = self.get_idempotency_policy()
        if policy is None or request.method not in policy.methods:
            return
        name = request.method.lower()
        if handler := getattr(self, name, None):
            setattr(self, name, partial(self._guarded, handler, policy.resolve()))

    def handle_exception(self, exc: Exception) -> HttpResponseBase:  # type: ignore[override]
        if isinstance(exc, IdempotencyError):
            set_rollback()
            return http.problem(exc, self.request._request)
        return super().handle_exception(exc)

    def _guarded(
        self, handler: Handler, policy: Policy, request: Request, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        key = http.required(lambda request: self.get_idempotency_key(), request._request, policy)
        work = partial(handler, request, *args, **kwargs)
        if key is None and policy.short_window is None:
            return work()
        operation = self._operation(key or "", policy)
        answer = work if key is None else partial(self._once, operation, work, policy)
        return guards.once_within(policy.short_window, operation, answer)

    def _operation(self, key: str, policy: Policy) -> Operation:
        return http.operation(
            self.request._request,
            policy,
            key=key,
            scope=self.get_idempotency_scope(),
            fingerprint=self.get_idempotency_fingerprint(policy),
            label=self.get_idempotency_label(key) if key else "",
        )

    def _once(self, operation: Operation, handler: Handler, policy: Policy) -> HttpResponseBase:
        if policy.lease:
            run = leased.run(operation, partial(self._work_leased, handler, policy), policy=policy)
        else:
            work = partial(self._work, handler, policy)
            run = engine.run(operation, work, policy=policy, before_rerun=self._rewind)
        if run.replay is None:
            return run.value  # type: ignore[no-any-return]
        self.check_idempotency_access()
        return http.mark_replayed(self.get_replay_response(run.replay))

    def _rewind(self) -> None:
        """Let the handler read body and files anew, those of REST framework's own parsers too."""
        bodies.rewind(self.request._request)
        files = getattr(self.request, "_files", None)
        if isinstance(files, Mapping):  # else nobody has parsed the body yet
            bodies.rewind_files(_lists(files))

    def _work(self, handler: Handler, policy: Policy) -> tuple[HttpResponseBase, Outcome | None]:
        response = handler()
        if not policy.keeps(response.status_code):
            return response, None
        response = self._render(response)
        return response, answers.keep(response, policy, request=self.request._request)

    def _work_leased(
        self, handler: Handler, policy: Policy, claim: leased.Claim
    ) -> tuple[Any, Outcome | None]:
        self.idempotency_claim = claim
        response, outcome = self._work(handler, policy)
        if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise leased.Unfinished(response)
        return response, outcome

    def _render(self, response: HttpResponseBase) -> HttpResponseBase:
        """Finalize and render inside the transaction, and have ``dispatch`` not do it again."""
        headers, finalize = dict(self.headers), cast(Handler, self.finalize_response)
        ready = finalize(self.request, response, *self.args, **self.kwargs)
        self.headers = headers  # finalizing takes Vary out of them
        if hasattr(ready, "render"):
            ready = ready.render()

        def finalize_once(
            request: Request, response: HttpResponseBase, *args: Any, **kwargs: Any
        ) -> HttpResponseBase:
            return response if response is ready else finalize(request, response, *args, **kwargs)

        self.finalize_response = finalize_once  # type: ignore[method-assign, assignment]
        return ready


def _content(request: Request, policy: Policy) -> bytes:
    """Digest the content: parsed where REST framework has to parse it anyway, else as it was sent."""
    http_request = request._request
    if http_request.content_type in bodies.FORMS or bodies.is_gone(http_request):
        try:
            return _parsed(request, policy)
        except UnsupportedMediaType:
            pass  # the view's own answer, if it reads the data at all
    return bodies.fingerprint(http_request, ignored=policy.ignored_fields)


def _parsed(request: Request, policy: Policy) -> bytes:
    data, files, ignored = request.data, _lists(request.FILES), policy.ignored_fields
    if isinstance(data, MultiValueDict):
        return fingerprints.of_fields(_lists(request.POST), files, ignored=ignored)
    if isinstance(data, Mapping):
        data = {name: value for name, value in data.items() if name not in files}
    return fingerprints.combine(
        fingerprints.of_value(data, ignored=ignored), fingerprints.of_fields({}, files, ignored=ignored)
    )


def _lists(values: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Name all values of each field; ``FileUploadParser`` gives a plain dict with one."""
    if isinstance(values, MultiValueDict):
        return dict(values.lists())
    return {name: [value] for name, value in values.items()}
