"""The admin shows records, changes none, and reads little of a large table."""

import json
import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connections, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from idempotency import engine
from idempotency.admin import records as admin
from idempotency.admin import tables
from idempotency.models import IdempotencyRecord
from idempotency.policies import Policy
from idempotency.values import Operation, Outcome

LIST = "admin:idempotency_idempotencyrecord_changelist"
DETAIL = "admin:idempotency_idempotencyrecord_change"
JSON = (("Content-Type", "application/json"), ("Location", "/api/orders/SO1"))

pytestmark = pytest.mark.django_db(databases="__all__")


@pytest.fixture
def staff() -> Client:
    """Somebody who may view records, and nothing else."""
    user = User.objects.create_user("staff", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_idempotencyrecord"))
    client = Client()
    client.force_login(user)
    return client


def keep(
    key: str,
    *,
    name: str = "orders.create",
    status: int | None = 201,
    headers: Any = JSON,
    body: bytes | None = b"{}",
    outcome: Outcome | None = None,
    label: str = "",
    fingerprint: bytes | None = None,
    retention: timedelta | None = timedelta(hours=24),
) -> IdempotencyRecord:
    operation = Operation(name=name, scope="user:1", key=key, label=label, fingerprint=fingerprint)
    outcome = outcome or Outcome(status=status, headers=headers, body=body)
    engine.run(operation, lambda: (None, outcome), policy=Policy(retention=retention))
    return records().get(pk=operation.id)


def records() -> Any:
    return IdempotencyRecord.objects.using(engine.database(Policy()))


def expire(record: IdempotencyRecord) -> None:
    records().filter(pk=record.pk).update(expires_at=timezone.now() - timedelta(hours=1))


def listed(client: Client, **query: Any) -> list[str]:
    response = client.get(reverse(LIST), query)
    assert response.status_code == 200
    return [record.key for record in response.context_data["cl"].result_list]


def detail(client: Client, record: IdempotencyRecord) -> str:
    response = client.get(reverse(DETAIL, args=[record.pk]))
    assert response.status_code == 200
    return response.content.decode()


def text(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


class TestPermissions:
    def test_let_nobody_change_anything(self, admin_client: Client) -> None:
        record = keep("key-1")
        address = reverse(DETAIL, args=[record.pk])

        assert admin_client.get(reverse("admin:idempotency_idempotencyrecord_add")).status_code == 403
        assert admin_client.post(address, {"key": "other"}).status_code == 403
        delete = reverse("admin:idempotency_idempotencyrecord_delete", args=[record.pk])
        assert admin_client.post(delete, {"post": "yes"}).status_code == 403
        action = {"action": "delete_selected", "_selected_action": [str(record.pk)]}
        admin_client.post(reverse(LIST), action)
        assert list(records().values_list("key", flat=True)) == ["key-1"]

    def test_are_needed_to_view(self) -> None:
        client = Client()
        client.force_login(User.objects.create_user("clerk", is_staff=True))

        assert client.get(reverse(LIST)).status_code == 403

    def test_to_view_are_enough(self, staff: Client) -> None:
        record = keep("key-1")

        assert listed(staff) == ["key-1"]
        assert "key-1" in detail(staff, record)


class TestList:
    def test_shows_what_stands_where(self, staff: Client) -> None:
        keep("key-1", label="1_cart_key-1")
        keep("key-2", name="coupons.grant", status=None, headers=(), retention=None)
        expire(keep("key-3", status=402))

        page = text(staff.get(reverse(LIST)).content.decode())

        assert "1_cart_key-1 orders.create user:1 completed 201 0 minutes in 23 hours, 59 minutes" in page
        assert "key-2 coupons.grant user:1 completed – 0 minutes never" in page
        assert "key-3 orders.create user:1 completed 402 0 minutes expired" in page

    def test_has_the_newest_first(self, staff: Client) -> None:
        for age in (3, 1, 2):
            record = keep(f"{age} h")
            created_at = timezone.now() - timedelta(hours=age)
            records().filter(pk=record.pk).update(created_at=created_at)

        assert listed(staff) == ["1 h", "2 h", "3 h"]

    @pytest.mark.parametrize(
        ("query", "keys"),
        [
            ({"state__exact": "COMPLETED"}, {"created", "declined", "expired", "value"}),
            ({"state__exact": "IN_PROGRESS"}, set()),
            ({"answer": "2"}, {"created", "expired"}),
            ({"answer": "4"}, {"declined"}),
            ({"answer": "none"}, {"value"}),
            ({"retention": "live"}, {"created", "declined", "value"}),
            ({"retention": "expired"}, {"expired"}),
            ({"retention": "ever"}, {"value"}),
            ({"answer": "4", "q": "dec"}, {"declined"}),
            ({"answer": "2", "q": "dec"}, set()),
        ],
    )
    def test_is_filtered(self, query: dict[str, str], keys: set[str], staff: Client) -> None:
        keep("created")
        keep("declined", status=402)
        expire(keep("expired", status=299))
        keep("value", outcome=Outcome.of(1), retention=None)

        assert set(listed(staff, **query)) == keys


class TestSearch:
    def test_finds_a_key_by_itself_or_its_beginning(self, staff: Client) -> None:
        for key in ("abc-1", "abc-2", "xabc", "a_c", "a%c"):
            keep(key)

        assert set(listed(staff, q="abc")) == {"abc-1", "abc-2"}
        assert listed(staff, q="abc-1") == ["abc-1"]
        assert listed(staff, q="a_c") == ["a_c"]
        assert listed(staff, q=" a%c ") == ["a%c"]
        assert listed(staff, q="nothing") == []

    def test_finds_a_record_by_its_id(self, staff: Client) -> None:
        record = keep("abc")
        keep("other")

        assert listed(staff, q=str(record.pk)) == ["abc"]

    def test_finds_a_label_where_no_key_begins_so(self, staff: Client) -> None:
        keep("abc", label="1_cart_abc")
        keep("other")

        assert listed(staff, q="1_cart") == ["abc"]

    @pytest.mark.django_db(transaction=True, databases="__all__")  # MariaDB's ANALYZE commits
    def test_uses_the_index_on_every_database(self, database: str, settings: Any) -> None:
        settings.IDEMPOTENCY_DATABASE = database
        fill(keep("key-0"), copies=300)
        connection = connections[database]
        with transaction.atomic(database), connection.cursor() as cursor:
            cursor.execute("ANALYZE" + " TABLE idempotency_record" * (connection.vendor == "mysql"))
            if connection.vendor == "postgresql":
                cursor.execute("SET LOCAL enable_seqscan = off")  # as in a table that is worth an index
            found = records().filter(admin._starts_with("key-29", database))
            named = found.explain().count("idempotency_key")

        assert found.count() == 11
        assert named == (2 if connection.vendor == "mysql" else 1)  # a possible key, and the used one


def fill(record: IdempotencyRecord, *, copies: int) -> None:
    values = {
        field.attname: getattr(record, field.attname) for field in IdempotencyRecord._meta.concrete_fields
    }
    records().bulk_create(
        IdempotencyRecord(**{**values, "id": identity(f"key-{number}"), "key": f"key-{number}"})
        for number in range(1, copies)
    )


def identity(key: str) -> Any:
    return Operation(name="filled", scope="", key=key).id


class TestLargeTable:
    def test_is_counted_up_to_a_bound(self, staff: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tables, "NEWEST", 3)
        for number in range(5):
            keep(str(number))

        response = staff.get(reverse(LIST))

        assert response.context_data["cl"].result_count == 3
        assert response.context_data["subtitle"] == "The first 3 records. A search finds any."

    def test_is_not_counted_in_full(self, staff: Client, database: str, settings: Any) -> None:
        settings.IDEMPOTENCY_DATABASE = database
        keep("key-1")

        with CaptureQueriesContext(connections[database]) as queries:
            listed(staff)
        counts = [query["sql"] for query in queries if "COUNT(" in query["sql"].upper()]

        assert counts
        assert all("LIMIT" in sql for sql in counts)

    def test_is_filtered_among_the_newest(self, staff: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tables, "NEWEST", 2)
        for age in range(4):
            record = keep(f"{age} h")
            created_at = timezone.now() - timedelta(hours=age)
            records().filter(pk=record.pk).update(created_at=created_at)

        assert listed(staff, answer="2") == ["0 h", "1 h"]
        subtitle = staff.get(reverse(LIST), {"answer": "2"}).context_data["subtitle"]
        assert subtitle == "Filters look through the newest 2 records."
        assert listed(staff, answer="2", q="3 h") == ["3 h"]

    def test_keeps_its_bodies_where_they_are(self, staff: Client) -> None:
        keep("key-1")
        with CaptureQueriesContext(connections["default"]) as queries:
            listed(staff)

        assert not [query["sql"] for query in queries if '"body"' in query["sql"]]


class TestDetail:
    def test_shows_json_indented_headers_and_fingerprint(self, staff: Client) -> None:
        body = json.dumps({"message": "订单已创建", "data": {"orderId": "SO1"}}).encode()

        page = detail(staff, keep("key-1", body=body, fingerprint=b"\x01\xfe" * 8))

        assert "&quot;message&quot;: &quot;订单已创建&quot;,\n  &quot;data&quot;: {" in page
        assert "<tr><th>Location</th><td>/api/orders/SO1</td></tr>" in page
        assert "01fe" * 8 in page
        assert "gets this outcome" in page

    def test_escapes_what_it_shows(self, staff: Client) -> None:
        evil = "<script>alert(1)</script>"

        page = detail(staff, keep(evil, label=evil, body=f'["{evil}"]'.encode(), headers=(("X-Evil", evil),)))

        assert evil not in page
        assert page.count("&lt;script&gt;alert(1)") >= 4

    @pytest.mark.parametrize(
        ("body", "shown"),
        [
            ("纯文本".encode(), "纯文本"),
            (b"\xff\x00\x01", "binary, 3 bytes"),
            (b"", ""),
            (None, "not kept: it was over the limit"),
            (b"[" * 10_000, "[[["),
        ],
    )
    def test_shows_other_bodies_as_what_they_are(self, body: bytes | None, shown: str, staff: Client) -> None:
        assert shown in detail(staff, keep("key-1", body=body))

    def test_shows_a_value(self, staff: Client) -> None:
        page = detail(staff, keep("key-1", outcome=Outcome.of({"amount": Decimal("9.90")})))

        assert "&quot;9.90&quot;" in page

    def test_cuts_a_long_body(self, staff: Client) -> None:
        page = detail(staff, keep("key-1", body=b"x" * 100_000))

        assert "x" * admin.PREVIEWED + " …" in page
        assert len(page) < 50_000

    def test_says_that_an_expired_record_counts_as_none(self, staff: Client) -> None:
        record = keep("key-1")
        expire(record)

        assert "runs afresh: expired" in detail(staff, record)


def test_records_of_another_database_are_shown(staff: Client, database: str, settings: Any) -> None:
    settings.IDEMPOTENCY_DATABASE = database
    record = keep("key-1")

    assert listed(staff) == ["key-1"]
    assert str(record.pk) in detail(staff, record)
