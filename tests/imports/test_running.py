"""An import on its way: chunks, cuts, rivals, the end."""

from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Thread

import pytest
from django.db import connection
from django.utils import timezone

from idempotency.exceptions import ClaimLost, OperationInProgress
from idempotency.models import IdempotencyRecord
from imports import applying, running
from imports.models import Finding, Import
from imports.running import run_import
from orders.models import Order
from tests.imports.files import counts, csv, line, numbered, upload
from tests.shopping import counts as shop_counts
from tests.shopping import on_hand, shopper

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("config.urls"),
    pytest.mark.usefixtures("_shop"),
]


@pytest.fixture(autouse=True)
def _bounds(settings):
    settings.IMPORTS_AT_ONCE = 0
    settings.IMPORTS_CHUNK = 10
    settings.IDEMPOTENCY_OUTBOX_RELAY_ON_COMMIT = False


def queued(content=None, **fields) -> Import:
    answer = upload(shopper(), content or numbered(35), **fields)
    assert answer.status_code == 202
    return Import.objects.get(pk=answer.json()["data"]["importId"])


def run(source, **kwargs):
    return run_import(import_id=str(source.pk), **kwargs)["status"]


def data(source):
    return shopper().get(f"/api/imports/{source.pk}").json()["data"]


class Cut(Exception):
    """What a test cuts an import off with."""


def cut_after(chunks, seen):
    """Watch until so many chunks are committed."""

    def watch(source):
        seen.append(source.handled)
        if len(seen) == chunks:
            raise Cut

    return watch


def meet_once(meet):
    """Watch the first chunk only."""
    return lambda present: meet(present) if present.handled == 10 else None


class TestChunks:
    def test_are_shown_as_they_are_committed(self):
        seen = []
        source = queued()

        assert run(source, watch=lambda present: seen.append((present.handled, present.percent))) == "done"

        assert seen == [(10, 28), (20, 57), (30, 85), (35, 100), (35, 100)]

    def test_go_on_behind_the_last_one(self):
        source = queued()
        with pytest.raises(Cut):
            run(source, watch=cut_after(2, []))
        assert (Order.objects.count(), data(source)["status"]) == (20, "running")
        seen = []

        assert run(source, watch=lambda present: seen.append(present.handled)) == "done"

        assert seen == [30, 35, 35]
        assert counts(data(source)) == {"created": 35}
        assert (Order.objects.count(), on_hand()) == (35, 1_000_000 - 35)

    def test_keep_nothing_of_one_that_was_cut_off_inside(self, monkeypatch):
        source = queued()
        calls = []

        def fail_at_third(**kwargs):
            tally = applying.apply(**kwargs)
            calls.append(1)
            if len(calls) == 3:
                raise Cut
            return tally

        monkeypatch.setattr(running, "apply", fail_at_third)
        with pytest.raises(Cut):
            run(source)

        assert (Order.objects.count(), on_hand()) == (20, 1_000_000 - 20)
        assert data(source)["progress"]["handled"] == 20
        monkeypatch.undo()
        assert run(source) == "done"
        assert (Order.objects.count(), on_hand()) == (35, 1_000_000 - 35)

    def test_begin_anew_when_a_rival_has_made_one_of_their_orders(self, monkeypatch, settings):
        source = queued(numbered(10))
        looked = []

        def rival_after_the_look(**kwargs):
            known = known_orders(**kwargs)
            if not looked:
                looked.append(1)
                rival()
            return known

        def rival():
            def make():
                settings.IMPORTS_AT_ONCE = 1
                upload(shopper(), csv(line("SO-000004")))
                connection.close()

            thread = Thread(target=make)
            thread.start()
            thread.join(30)

        known_orders = applying.bulk.known_orders
        monkeypatch.setattr(applying.bulk, "known_orders", rival_after_the_look)

        assert run(source) == "done"

        assert counts(data(source)) == {"created": 9, "skipped": 1}
        assert (Order.objects.count(), on_hand()) == (10, 1_000_000 - 10)


class TestOwners:
    def test_only_one_works_at_a_time(self):
        source = queued()
        refused = []

        def meet(present):
            with pytest.raises(OperationInProgress):
                run(source)
            refused.append(present.handled)

        assert run(source, watch=meet_once(meet)) == "done"

        assert refused == [10]
        assert counts(data(source)) == {"created": 35}

    def test_a_late_one_changes_nothing_after_a_takeover(self):
        source = queued()

        def lose(present):
            if present.handled == 10:
                IdempotencyRecord.objects.filter(operation="imports.run").update(
                    leased_until=timezone.now() - timedelta(seconds=1)
                )
                with pytest.raises(Cut):
                    run(source, watch=cut_after(1, []))
                IdempotencyRecord.objects.filter(operation="imports.run").update(
                    leased_until=timezone.now() - timedelta(seconds=1)
                )
                assert run(source) == "done"

        with pytest.raises(ClaimLost):
            run(source, watch=lose)

        assert counts(data(source)) == {"created": 35}
        assert (Order.objects.count(), on_hand()) == (35, 1_000_000 - 35)


class TestEnds:
    def test_a_cancelled_one_stops_at_the_next_chunk(self, settings):
        source = queued()
        client = shopper()
        answers = []

        def cancel(present):
            if present.handled == 20 and not answers:
                answers.extend(client.post(f"/api/imports/{source.pk}/cancel") for _ in range(2))

        assert run(source, watch=cancel) == "cancelled"

        assert [answer.status_code for answer in answers] == [200, 200]
        assert [answer.json()["data"]["isDuplicate"] for answer in answers] == [False, True]
        assert answers[0].json()["message"] == "Import cancelled"
        assert (Order.objects.count(), on_hand()) == (20, 1_000_000 - 20)
        assert data(source)["status"] == "cancelled"
        assert not list(Path(settings.IMPORTS_DIR).iterdir())

        again = queued()
        assert again.pk != source.pk
        assert run(again) == "done"
        assert counts(data(again)) == {"created": 15, "skipped": 20}

    def test_one_that_waits_is_cancelled_at_once(self):
        source = queued()
        assert shopper().post(f"/api/imports/{source.pk}/cancel").status_code == 200
        assert run(source) == "cancelled"
        assert Order.objects.count() == 0

    def test_one_that_is_done_cannot_be_cancelled(self):
        source = queued()
        run(source)
        answer = shopper().post(f"/api/imports/{source.pk}/cancel")

        assert (answer.status_code, answer.json()["code"]) == (409, "invalid_transition")
        assert answer.json()["detail"] == "The import has ended already and cannot be cancelled"
        assert data(source)["status"] == "done"

    def test_one_whose_file_is_lost_has_failed_and_blocks_nothing(self, settings):
        source = queued()
        (Path(settings.IMPORTS_DIR) / str(source.pk)).unlink()

        assert run(source) == "failed"

        assert data(source)["reason"] == "The uploaded file is not there any more."
        assert queued().pk != source.pk

    def test_one_whose_file_has_changed_has_failed(self, settings):
        source = queued()
        (Path(settings.IMPORTS_DIR) / str(source.pk)).write_bytes(b"order_no\n1\n")

        assert run(source) == "failed"
        assert data(source)["reason"]
        assert shop_counts() == {"Order": 0, "OrderLine": 0, "StockMovement": 0}

    def test_one_that_never_gets_on_is_given_up(self, monkeypatch):
        source = queued()
        monkeypatch.setattr(running, "apply", partial(_raise, Cut))
        for _ in range(running.MOST_ATTEMPTS):
            with pytest.raises(Cut):
                run(source)

        assert run(source) == "failed"
        assert data(source)["reason"] == "It was cut off too often without getting on."

    def test_one_that_gets_on_is_not(self):
        source = queued(numbered(150))
        for _ in range(running.MOST_ATTEMPTS + 2):
            with pytest.raises(Cut):
                run(source, watch=cut_after(1, []))

        assert run(source) == "done"
        assert counts(data(source)) == {"created": 150}


class TestFindings:
    def test_are_kept_up_to_a_limit_and_all_counted(self, settings):
        settings.IMPORTS_FINDINGS = 12
        lines = [line(f"SO-{number}", sku="NONE-1" if number % 2 else "TEA-100") for number in range(60)]
        source = queued(csv(*lines))

        assert run(source) == "done"

        assert counts(data(source)) == {"created": 30, "rejected": 30}
        assert Finding.objects.count() == 12
        answer = shopper().get(f"/api/imports/{source.pk}/errors.csv")
        report = b"".join(answer.streaming_content).decode("utf-8-sig")
        rows = report.splitlines()
        assert len(rows) == 14
        assert rows[-1] == ",,18 more lines were rejected; their reasons were not kept.,,"


def _raise(error, **kwargs):
    raise error
