"""Each check speaks up in its case, and only there."""

from datetime import timedelta
from types import ModuleType
from typing import Any, ClassVar

import pytest
from django.core import checks
from django.db import connections
from django.test import override_settings
from django.urls import path
from django.views import View
from rest_framework.decorators import action
from rest_framework.permissions import AllowAny, IsAuthenticated
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter
from rest_framework.views import APIView
from rest_framework.viewsets import ViewSet

from idempotency import conf
from idempotency.checks import databases, views
from idempotency.checks import settings as setting_checks
from idempotency.mixins import IdempotentMixin
from idempotency.policies import Policy

RIGHT_SQLITE = {"transaction_mode": "IMMEDIATE", "timeout": 20, "init_command": "PRAGMA journal_mode=WAL"}


def ids(messages: list[checks.CheckMessage]) -> list[str]:
    return [message.id for message in messages]


class TestAll:
    def test_say_what_to_do(self) -> None:
        with override_settings(IDEMPOTENCY_RETENTON=1, IDEMPOTENCY_WAIT=5):
            messages = checks.run_checks(tags=["idempotency"])

        assert {"idempotency.W001", "idempotency.E001"} <= set(ids(messages))
        assert all(message.hint for message in messages)

    @override_settings(IDEMPOTENCY_DATABASE="nowhere", ROOT_URLCONF="config.urls")
    def test_survive_a_database_that_is_not_there(self) -> None:
        assert ids(checks.run_checks(tags=["idempotency"])) == ["idempotency.E001"]

    @override_settings(ROOT_URLCONF="config.urls")
    def test_are_silent_about_the_shop(self) -> None:
        assert checks.run_checks(tags=["idempotency"]) == []


class TestNames:
    def test_guess_what_was_meant(self) -> None:
        with override_settings(IDEMPOTENCY_RETENTON=timedelta(hours=1)):
            (message,) = setting_checks.check_names()

        assert message.id == "idempotency.W001"
        assert message.hint == "Did you mean IDEMPOTENCY_RETENTION?"

    def test_list_the_settings_where_nothing_is_close(self) -> None:
        with override_settings(IDEMPOTENCY_XYZZY=1):
            (message,) = setting_checks.check_names()

        assert "IDEMPOTENCY_DATABASE" in message.hint


class TestValues:
    def test_have_a_rule_for_each_setting(self) -> None:
        assert setting_checks.RULES.keys() == conf.DEFAULTS.keys()

    def test_are_right_by_default(self) -> None:
        assert setting_checks.check_values() == []

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("DATABASE", "nowhere"),
            ("HEADER", "Idempotency Key"),
            ("HEADER", b"Idempotency-Key"),
            ("REQUIRED", "yes"),
            ("RETENTION", 86400),
            ("RETENTION", timedelta(0)),
            ("WAIT", 5),
            ("WAIT", timedelta(seconds=-1)),
            ("WAIT", None),
            ("REMEMBER", 402),
            ("REMEMBER", "402"),
            ("REMEMBER", ["402"]),
            ("BODY_LIMIT", "1 MB"),
            ("BODY_LIMIT", -1),
            ("BODY_LIMIT", True),
            ("RETRY_AFTER", 1),
            ("RETRY_AFTER", timedelta(0)),
            ("RERUNS", 1.5),
            ("RERUNS", -1),
            ("OUTBOX_ROUTES", ["orders.paid"]),
            ("OUTBOX_ROUTES", {"orders.paid": "mails.send"}),
            ("OUTBOX_ROUTES", {"orders.paid": [1]}),
            ("OUTBOX_ROUTES", {"": []}),
            ("OUTBOX_SENDER", "send"),
            ("OUTBOX_SENDER", None),
            ("OUTBOX_RELAY_ON_COMMIT", 1),
            ("OUTBOX_LEASE", 30),
            ("OUTBOX_LEASE", timedelta(seconds=2)),
            ("OUTBOX_MAX_ATTEMPTS", 0),
            ("OUTBOX_RETENTION", timedelta(0)),
            ("PROBLEM_URL", None),
            ("PROBLEM_URL", "https://example.org/{page}"),
        ],
    )
    def test_are_refused_when_wrong(self, name: str, value: Any) -> None:
        with override_settings(**{f"IDEMPOTENCY_{name}": value}):
            (message,) = setting_checks.check_values()

        assert message.id == "idempotency.E001"
        assert message.msg == f"IDEMPOTENCY_{name} is {value!r}."

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("DATABASE", "default"),
            ("RETENTION", None),
            ("WAIT", timedelta(seconds=2)),
            ("REMEMBER", [402, 409]),
            ("BODY_LIMIT", 0),
            ("RERUNS", 0),
            ("OUTBOX_ROUTES", {"orders.paid": ("mails.send",), "orders.refunded": []}),
            ("OUTBOX_LEASE", timedelta(minutes=1)),
            ("OUTBOX_MAX_ATTEMPTS", 1),
            ("OUTBOX_RETENTION", None),
            ("PROBLEM_URL", "about:blank"),
        ],
    )
    def test_are_taken_when_right(self, name: str, value: Any) -> None:
        with override_settings(**{f"IDEMPOTENCY_{name}": value}):
            assert setting_checks.check_values() + setting_checks.check_remembered() == []

    @pytest.mark.parametrize("status", [200, 302, 500, 503])
    def test_remember_only_final_refusals(self, status: int) -> None:
        with override_settings(IDEMPOTENCY_REMEMBER={402, status}):
            (message,) = setting_checks.check_remembered()

        assert message.id == "idempotency.E002"
        assert str(status) in message.msg


class Acts(APIView):
    permission_classes: ClassVar[list[Any]] = [IsAuthenticated]

    def post(self, request: Any) -> Response:
        return Response()


class Guarded(IdempotentMixin, Acts):
    pass


class Anybody(IdempotentMixin, Acts):
    permission_classes: ClassVar[list[Any]] = [AllowAny]


class Nothing(Anybody):
    permission_classes: ClassVar[list[Any]] = []


class Exempt(Anybody):
    idempotency_policy = None


class Scoped(Anybody):
    def get_idempotency_scope(self) -> str:
        return "tenant"


class Dynamic(Exempt):
    def get_idempotency_policy(self) -> Policy | None:
        return Policy()


class OtherMethods(Anybody):
    idempotency_policy = Policy(methods=frozenset({"PUT"}))


class DecidesItself(Anybody):
    def get_permissions(self) -> list[Any]:
        return [IsAuthenticated()]


class Composed(Anybody):
    permission_classes: ClassVar[list[Any]] = [AllowAny & IsAuthenticated]


class Reads(IdempotentMixin, ViewSet):
    permission_classes: ClassVar[list[Any]] = [AllowAny]

    def list(self, request: Any) -> Response:
        return Response()


class Actions(Reads):
    @action(detail=False, methods=["post"], permission_classes=[IsAuthenticated])
    def guarded(self, request: Any) -> Response:
        return Response()

    @action(detail=False, methods=["post"], idempotency_policy=None)
    def exempt(self, request: Any) -> Response:
        return Response()


class OpenAction(Reads):
    permission_classes: ClassVar[list[Any]] = [IsAuthenticated]

    @action(detail=False, methods=["post"], permission_classes=[AllowAny])
    def opened(self, request: Any) -> Response:
        return Response()


def urls(*patterns: Any) -> Any:
    module = ModuleType("urls_of_a_test")
    module.urlpatterns = list(patterns)  # type: ignore[attr-defined]
    return override_settings(ROOT_URLCONF=module)


def routed(viewset: type[ViewSet]) -> Any:
    router = SimpleRouter()
    router.register("things", viewset, basename="things")
    return urls(*router.urls)


class TestViews:
    @pytest.mark.parametrize("view", [Anybody, Nothing, Dynamic])
    def test_are_told_that_strangers_have_no_scope(self, view: type[APIView]) -> None:
        with urls(path("a", view.as_view()), path("b", Guarded.as_view())):
            (message,) = views.check_scope()

        assert message.id == "idempotency.E006"
        assert message.obj == f"{__name__}.{view.__name__}"

    @pytest.mark.parametrize("view", [Exempt, Scoped, OtherMethods, DecidesItself, Composed])
    def test_are_left_alone_where_no_stranger_claims(self, view: type[APIView]) -> None:
        with urls(path("a", view.as_view())):
            assert views.check_scope() == []

    @pytest.mark.parametrize("viewset", [Reads, Actions])
    def test_are_judged_by_what_their_routes_do(self, viewset: type[ViewSet]) -> None:
        with routed(viewset):
            assert views.check_scope() == []

    def test_are_judged_action_by_action(self) -> None:
        with routed(OpenAction):
            (message,) = views.check_scope()

        assert message.obj == f"{__name__}.OpenAction"

    @pytest.mark.parametrize("urlconf", ["no.such.module", "tests.idempotency.conftest"])
    def test_are_not_needed(self, urlconf: str) -> None:
        with override_settings(ROOT_URLCONF=urlconf):
            assert views.routes() == []

    def test_without_the_mixin_do_not_matter(self) -> None:
        with urls(path("a", View.as_view()), path("b", Acts.as_view())):
            assert views.routes() == []


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Replace the options of one database, which is not asked."""

    def replace(alias: str, **values: Any) -> None:
        monkeypatch.setitem(connections[alias].settings_dict, "OPTIONS", values)

    return replace


@pytest.fixture
def records_in(settings: Any) -> Any:
    """Say which database holds the records."""

    def name(alias: str) -> None:
        settings.IDEMPOTENCY_DATABASE = alias

    return name


class TestDatabases:
    @pytest.fixture(autouse=True)
    def in_turn(self, database: str, settings: Any) -> None:
        settings.IDEMPOTENCY_DATABASE = database

    def test_give_no_warning_as_the_shop_sets_them(self) -> None:
        assert databases.check_vendor() == []
        assert databases.check_sqlite() == []
        assert databases.check_isolation() == []

    def test_must_have_a_claim(self, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(type(connections[database]), "vendor", "oracle")

        assert ids(databases.check_vendor()) == ["idempotency.E003"]

    def test_note_atomic_requests(self, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
        assert databases.check_atomic_requests() == []

        monkeypatch.setitem(connections[database].settings_dict, "ATOMIC_REQUESTS", value=True)
        (message,) = databases.check_atomic_requests()

        assert message.id == "idempotency.I001"
        assert message.level < checks.WARNING

    def test_include_those_that_policies_name(self, database: str, settings: Any) -> None:
        class Elsewhere(Guarded):
            idempotency_policy = Policy(using=database)

        settings.IDEMPOTENCY_DATABASE = None
        with urls(path("a", Elsewhere.as_view())):
            assert database in {connection.alias for connection in databases._connections()}


SQLITE = [pytest.param("sqlite", marks=pytest.mark.sqlite)]
POSTGRESQL = [pytest.param("postgresql", marks=pytest.mark.postgresql)]
MARIADB = [pytest.param("mariadb", marks=pytest.mark.mariadb)]


@pytest.mark.parametrize("vendor", SQLITE, indirect=True)
class TestSQLite:
    @pytest.fixture(autouse=True)
    def holds_the_records(self, database: str, settings: Any) -> None:
        settings.IDEMPOTENCY_DATABASE = database

    @pytest.mark.parametrize(
        ("changed", "numbers"),
        [
            ({}, []),
            ({"transaction_mode": "EXCLUSIVE"}, []),
            ({"init_command": "pragma journal_mode = wal;"}, []),
            ({"transaction_mode": None}, ["W002"]),
            ({"transaction_mode": "DEFERRED"}, ["W002"]),
            ({"init_command": "PRAGMA journal_mode=DELETE"}, ["W003"]),
            ({"timeout": 5}, ["W004"]),
        ],
    )
    def test_is_asked_for_the_options_that_let_rivals_wait(
        self, changed: dict[str, Any], numbers: list[str], database: str, options: Any
    ) -> None:
        options(database, **{**RIGHT_SQLITE, **changed})

        assert ids(databases.check_sqlite()) == [f"idempotency.{number}" for number in numbers]

    def test_is_unsafe_with_djangos_defaults(self, database: str, options: Any) -> None:
        options(database)

        assert ids(databases.check_sqlite()) == [f"idempotency.W00{number}" for number in (2, 3, 4)]


class TestIsolation:
    @pytest.fixture(autouse=True)
    def in_turn(self, database: str, settings: Any) -> None:
        settings.IDEMPOTENCY_DATABASE = database

    @pytest.mark.parametrize("vendor", POSTGRESQL, indirect=True)
    @pytest.mark.parametrize(("level", "is_right"), [(None, True), (2, True), (3, False), (4, False)])
    def test_of_postgresql(self, level: int | None, is_right: bool, database: str, options: Any) -> None:
        options(database, isolation_level=level)

        assert ids(databases.check_isolation()) == ([] if is_right else ["idempotency.W005"])

    @pytest.mark.parametrize("vendor", MARIADB, indirect=True)
    @pytest.mark.parametrize(
        ("level", "is_right"),
        [("READ COMMITTED", True), ("repeatable read", False), ("serializable", False), (None, False)],
    )
    def test_of_mariadb(self, level: str | None, is_right: bool, database: str, options: Any) -> None:
        options(database, isolation_level=level)

        assert ids(databases.check_isolation()) == ([] if is_right else ["idempotency.W005"])


class ToAnother:
    """Sends the lab's rows to another database than the records."""

    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        return "another" if model._meta.app_label == "lab" else None


class TestModels:
    def test_in_the_database_of_the_records_are_fine(self) -> None:
        assert databases.check_models() == []

    def test_in_another_are_named(self) -> None:
        with override_settings(DATABASE_ROUTERS=[ToAnother()]):
            (message,) = databases.check_models()

        assert message.id == "idempotency.W006"
        assert "lab.Effect" in message.msg


@pytest.mark.django_db(databases="__all__")
class TestServers:
    @pytest.fixture(autouse=True)
    def in_turn(self, database: str, settings: Any) -> None:
        settings.IDEMPOTENCY_DATABASE = database

    def test_are_not_asked_unless_named(self) -> None:
        with override_settings(IDEMPOTENCY_DATABASE="default"):
            assert databases.check_servers(databases=None) == []

    @pytest.mark.parametrize("vendor", POSTGRESQL, indirect=True)
    def test_of_postgresql_must_end_what_hangs(self, database: str) -> None:
        with connections[database].cursor() as cursor:
            cursor.execute("SET idle_in_transaction_session_timeout = 0")
            asked = databases.check_servers(databases=[database])
            cursor.execute("SET idle_in_transaction_session_timeout = '60s'")

        assert ids(asked) == ["idempotency.W007"]
        assert databases.check_servers(databases=[database]) == []

    @pytest.mark.parametrize("vendor", MARIADB, indirect=True)
    def test_of_mariadb_must_keep_a_transaction_after_a_timeout(
        self, database: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert databases.check_servers(databases=[database]) == []

        monkeypatch.setattr(databases, "_ask", lambda connection, sql: "1")  # a server starts with it or not

        assert ids(databases.check_servers(databases=[database])) == ["idempotency.E004"]
