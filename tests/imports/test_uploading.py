import hashlib
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.core.management import call_command
from django.utils import timezone

from idempotency.models import IdempotencyRecord, OutboxMessage
from imports.models import Finding, Import
from orders.models import Order
from tests.imports.files import FILES, counts, csv, line, numbered, upload
from tests.shopping import counts as shop_counts
from tests.shopping import shopper

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("config.urls"),
    pytest.mark.usefixtures("_shop"),
]


def kept(settings) -> list[str]:
    directory = Path(settings.IMPORTS_DIR)
    return sorted(path.name for path in directory.iterdir()) if directory.exists() else []


class TestFirst:
    def test_answers_201_with_what_became_of_the_lines(self, settings):
        answer = upload(shopper(), "mixed_valid_invalid.csv")

        source = Import.objects.get()
        data = answer.json()["data"]
        assert (answer.status_code, answer.json()["message"]) == (201, "File imported")
        assert answer["Location"] == f"/api/imports/{source.pk}"
        assert "Idempotent-Replayed" not in answer
        assert datetime.fromisoformat(data.pop("importedAt")) == source.finished_at
        assert data == {
            "importId": str(source.pk),
            "status": "done",
            "importedCount": 3,
            "created": 3,
            "updated": 0,
            "unchanged": 0,
            "skipped": 0,
            "rejected": 3,
            "isDuplicate": False,
            "mode": "batch",
            "period": "",
            "fileName": "mixed_valid_invalid.csv",
            "progress": {"handled": 6, "total": 6, "percent": 100},
            "reason": "",
        }
        assert kept(settings) == []

    def test_keeps_what_the_file_is_known_by(self):
        upload(shopper(), "base_orders.csv")

        content = (FILES / "base_orders.csv").read_bytes()
        source = Import.objects.get()
        assert source.md5 == "7904e1c412bd82d3260b7c31833cd035"
        assert source.sha256 == hashlib.sha256(content).hexdigest()
        assert source.size == len(content)

    def test_makes_orders_of_the_user_with_all_cells(self):
        client = shopper()
        cells = {"quantity": 3, "unit_price": "7.5", "remark": "to the door"}
        upload(client, csv(line("SO-1", **cells)))

        order = Order.objects.get()
        assert (order.user.username, order.client_order_no, order.status) == ("alice", "SO-1", "PENDING")
        assert (order.amount, order.currency) == ("22.50", "CNY")
        assert (order.customer_phone, order.remark) == ("13800000001", "to the door")
        assert f"{order.order_date}" == "2024-11-05"
        assert list(order.lines.values_list("sku", "quantity", "price_minor")) == [("TEA-100", 3, 750)]
        found = client.get(f"/api/orders/{order.order_no}").json()["data"]
        assert (found["orderId"], found["amount"]) == (order.order_no, "22.50")


class TestRepeat:
    def test_answers_200_with_the_first(self):
        first = upload(shopper(), "base_orders.csv").json()["data"]
        before = shop_counts()

        answer = upload(shopper(), "base_orders.csv")

        assert (answer.status_code, answer.json()["message"]) == (200, "File already imported")
        assert answer["Idempotent-Replayed"] == "true"
        assert answer.json()["data"] == {**first, "isDuplicate": True}
        assert shop_counts() == before
        assert Import.objects.count() == 1

    def test_speaks_chinese_where_the_client_does(self):
        client = shopper()
        client.defaults["HTTP_ACCEPT_LANGUAGE"] = "zh-CN"
        upload(client, "base_orders.csv")
        assert upload(client, "base_orders.csv").json()["message"] == "该文件已导入"

    def test_is_known_by_its_bytes_without_being_read(self, settings, monkeypatch):
        upload(shopper(), "base_orders.csv")
        monkeypatch.setattr("imports.services.read_checked", None)

        assert upload(shopper(), "base_orders.csv").status_code == 200
        assert kept(settings) == []

    def test_of_another_user_is_a_first(self):
        upload(shopper("alice"), "base_orders.csv")
        answer = upload(shopper("bob"), "base_orders.csv")

        assert (answer.status_code, counts(answer.json()["data"])) == (201, {"created": 5})
        assert Order.objects.count() == 10

    def test_of_another_period_is_a_first(self):
        client = shopper()
        answers = [
            upload(client, numbered(2), mode="incremental", period=period)
            for period in ("2026-11", "2026-11", "2026-12")
        ]

        assert [answer.status_code for answer in answers] == [201, 200, 201]
        assert counts(answers[2].json()["data"]) == {"skipped": 2}
        assert Order.objects.count() == 2

    def test_of_a_file_that_imported_nothing_is_a_first(self):
        client = shopper()
        content = csv(line("SO-1", sku="LATER-1"))
        assert counts(upload(client, content).json()["data"]) == {"rejected": 1}
        from tests.shopping import sell

        sell(sku="LATER-1")

        assert counts(upload(client, content).json()["data"]) == {"created": 1}

    def test_of_a_refused_file_is_read_again(self, settings):
        assert [upload(shopper(), "header_only.csv").json()["code"] for _ in range(2)] == ["no_rows"] * 2
        assert (Import.objects.count(), kept(settings)) == (0, [])


class TestLarge:
    @pytest.fixture(autouse=True)
    def _bounds(self, settings):
        settings.IMPORTS_AT_ONCE = 4
        settings.IMPORTS_CHUNK = 2
        settings.IDEMPOTENCY_OUTBOX_RELAY_ON_COMMIT = False

    def test_is_queued_with_its_message_and_answered_202(self, settings):
        answer = upload(shopper(), "base_orders.csv")

        source = Import.objects.get()
        data = answer.json()["data"]
        assert (answer.status_code, answer["Retry-After"]) == (202, "1")
        assert answer["Location"] == f"/api/imports/{source.pk}"
        assert (data["status"], data["importedAt"], data["isDuplicate"]) == ("queued", None, False)
        assert data["progress"] == {"handled": 0, "total": 5, "percent": 0}
        message = OutboxMessage.objects.get()
        assert (message.topic, message.payload) == ("imports.queued", f'{{"import_id":"{source.pk}"}}')
        assert Order.objects.count() == 0
        assert kept(settings) == [str(source.pk)]

    def test_is_imported_by_its_task_once(self, settings):
        from imports.tasks import run

        upload(shopper(), "base_orders.csv")
        source = Import.objects.get()
        results = [run(import_id=str(source.pk), message_id="1") for _ in range(2)]

        assert results == ["done", "done"]
        assert Order.objects.count() == 5
        assert kept(settings) == []
        data = shopper().get(f"/api/imports/{source.pk}").json()["data"]
        assert (data["status"], data["progress"]) == ("done", {"handled": 5, "total": 5, "percent": 100})

    def test_repeated_while_it_runs_is_answered_202_with_its_progress(self):
        first = upload(shopper(), "base_orders.csv").json()["data"]
        answer = upload(shopper(), "base_orders.csv")

        assert (answer.status_code, answer["Idempotent-Replayed"]) == (202, "true")
        assert answer.json()["data"] == {**first, "isDuplicate": True}
        assert OutboxMessage.objects.count() == 1

    def test_repeated_when_its_worker_has_died_sends_another(self, settings):
        upload(shopper(), "base_orders.csv")
        Import.objects.update(moved_at=timezone.now() - settings.IMPORTS_LEASE - timedelta(seconds=1))

        assert [upload(shopper(), "base_orders.csv").status_code for _ in range(2)] == [202, 202]
        assert OutboxMessage.objects.count() == 2

    def test_goes_on_by_the_clock_when_its_worker_has_died(self, settings, capsys):
        upload(shopper(), "base_orders.csv")
        call_command("resume_imports")
        assert capsys.readouterr().out == "0 imports go on, 0 files removed\n"
        Import.objects.update(moved_at=timezone.now() - settings.IMPORTS_LEASE - timedelta(seconds=1))

        call_command("resume_imports")

        assert capsys.readouterr().out == "1 imports go on, 0 files removed\n"
        assert OutboxMessage.objects.count() == 2


class TestRefusal:
    @pytest.mark.parametrize(
        ("fields", "pointer"),
        [
            ({"mode": "all"}, "#/mode"),
            ({"mode": "incremental", "period": "this month"}, "#/period"),
            ({"mode": "incremental", "period": "2" * 33}, "#/period"),
            ({"mode": "batch", "period": "2026-11"}, "#/period"),
        ],
    )
    def test_names_the_field(self, fields, pointer, settings):
        answer = upload(shopper(), "base_orders.csv", **fields)

        assert answer.status_code == 400
        assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
        assert (Import.objects.count(), kept(settings)) == (0, [])

    def test_asks_for_a_file(self):
        answer = shopper().post("/api/imports", {"mode": "batch"}, format="multipart")
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "#/file")

    def test_takes_no_json(self):
        assert shopper().post("/api/imports", {"mode": "batch"}).status_code == 415

    def test_is_said_in_the_clients_language(self):
        client = shopper()
        english = upload(client, "header_only.csv").json()
        client.defaults["HTTP_ACCEPT_LANGUAGE"] = "zh-CN"
        chinese = upload(client, "header_only.csv").json()

        assert english["code"] == chinese["code"] == "no_rows"
        assert english["detail"] != chinese["detail"]

    def test_of_a_large_upload_keeps_nothing(self, settings):
        settings.IMPORTS_MAX_BYTES = 300
        answer = upload(shopper(), "base_orders.csv")

        assert (answer.status_code, answer.json()["code"]) == (400, "too_large")
        assert (Import.objects.count(), kept(settings)) == (0, [])

    def test_asks_who_it_is(self):
        client = shopper()
        client.credentials()
        client.defaults.pop("HTTP_AUTHORIZATION", None)
        assert client.__class__().post("/api/imports").status_code == 401


class TestAccess:
    def test_strangers_do_not_see_that_it_exists(self):
        import_id = upload(shopper("alice"), "base_orders.csv").json()["data"]["importId"]
        bob, staff = shopper("bob"), shopper("carol", is_staff=True)
        reads = [f"/api/imports/{import_id}", f"/api/imports/{import_id}/errors.csv"]

        assert [bob.get(address).status_code for address in reads] == [404, 404]
        assert bob.post(f"/api/imports/{import_id}/cancel").status_code == 404
        assert [staff.get(address).status_code for address in reads] == [200, 200]

    def test_a_file_is_readable_by_its_own_system_user_alone(self, settings):
        settings.IMPORTS_AT_ONCE = 0
        upload(shopper(), "base_orders.csv")

        path = Path(settings.IMPORTS_DIR) / str(Import.objects.get().pk)
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_file_that_nobody_waits_for_is_swept(settings):
    import os

    from imports import storing

    settings.IMPORTS_AT_ONCE = 0
    upload(shopper(), "base_orders.csv")
    waiting = kept(settings)
    directory = Path(settings.IMPORTS_DIR)
    (directory / "5f0f2a35-0d5c-4a3e-9a55-5f3dfb6f9f2e").write_bytes(b"cut off")
    (directory / "notes.txt").write_bytes(b"somebody's own")
    long_ago = (timezone.now() - timedelta(days=2)).timestamp()
    for path in directory.iterdir():
        os.utime(path, (long_ago, long_ago))

    assert storing.sweep(now=timezone.now()) == 1
    assert kept(settings) == sorted([*waiting, "notes.txt"])


def test_nothing_of_the_file_is_kept_in_the_record():
    upload(shopper(), "base_orders.csv")
    record = IdempotencyRecord.objects.get(operation="imports.run")
    assert record.completed_at is not None
    assert Finding.objects.count() == 0
