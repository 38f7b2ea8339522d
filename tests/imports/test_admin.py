"""The pages for staff: upload, progress, cancel."""

import re

import pytest
from django.contrib.auth import get_user_model
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from imports.models import Import
from imports.running import run_import
from orders.models import Order
from tests.imports.files import FILES, numbered

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("config.urls"),
    pytest.mark.usefixtures("_shop"),
]
ADD = "/admin/imports/import/add/"


@pytest.fixture
def staff():
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("root"))
    return client


def send(client, content, *, name="orders.csv", **fields):
    file = SimpleUploadedFile(name, content)
    return client.post(ADD, {"file": file, "mode": "batch", **fields}, follow=True)


class TestUpload:
    def test_shows_what_became_of_the_lines(self, staff):
        answer = send(staff, (FILES / "mixed_valid_invalid.csv").read_bytes())

        page = answer.content.decode()
        source = Import.objects.get()
        assert answer.redirect_chain == [(f"/admin/imports/import/{source.pk}/change/", 302)]
        assert "Done: 6 of 6 lines" in page
        assert page.count("<tr><td>") == 3
        assert f"/api/imports/{source.pk}/errors.csv" in page
        assert Order.objects.count() == 3

    def test_of_the_same_file_shows_the_first(self, staff):
        pages = [send(staff, numbered(3)) for _ in range(2)]

        assert pages[0].redirect_chain == pages[1].redirect_chain
        assert "File already imported" in pages[1].content.decode()
        assert (Import.objects.count(), Order.objects.count()) == (1, 3)

    def test_says_why_a_file_is_refused_beside_its_field(self, staff):
        answer = send(staff, b"order_no,sku\n1,2\n")

        form = answer.context["form"]
        assert list(form.errors) == ["file"]
        assert "Error:" in answer.content.decode()
        assert Import.objects.count() == 0

    def test_refuses_a_period_that_counts_for_nothing(self, staff):
        assert list(send(staff, numbered(1), period="2026-11").context["form"].errors) == ["period"]
        assert send(staff, numbered(1), mode="incremental", period="2026-11").redirect_chain

    def test_needs_the_permission(self):
        client = Client()
        client.force_login(get_user_model().objects.create_user("clerk", is_staff=True))
        assert client.get(ADD).status_code == 403
        assert send(client, numbered(1)).status_code == 403
        assert Import.objects.count() == 0

    def test_can_be_filled_in_without_sight(self, staff):
        page = staff.get(ADD).content.decode()
        controls = re.findall(r"<(?:input|select)[^>]*id=\"(id_\w+)\"", page)
        assert controls == ["id_file", "id_mode", "id_period"]
        assert all(f'for="{control}"' in page for control in controls)
        assert 'aria-describedby="id_file_helptext"' in page
        assert 'id="id_file_helptext"' in page

    def test_speaks_chinese(self, staff):
        page = staff.get(ADD, headers={"Accept-Language": "zh-hans"}).content.decode()
        assert "上传订单文件" in page
        assert "同一文件无论上传多少次，只导入一次。" in page


class TestProgress:
    @pytest.fixture(autouse=True)
    def _bounds(self, settings):
        settings.IMPORTS_AT_ONCE = 0
        settings.IMPORTS_CHUNK = 10
        settings.IDEMPOTENCY_OUTBOX_RELAY_ON_COMMIT = False

    def test_is_on_the_page_and_in_its_fragment(self, staff):
        page = send(staff, numbered(40)).content.decode()
        source = Import.objects.get()
        fragment = f"/admin/imports/import/{source.pk}/progress/"
        seen = []

        assert f'data-url="{fragment}"' in page
        assert 'role="status" aria-live="polite"' in page
        assert "Reload this page" in page
        run_import(
            import_id=str(source.pk), watch=lambda _present: seen.append(staff.get(fragment).content.decode())
        )

        values = [re.search(r'role="progressbar"[^>]*aria-valuenow="(\d+)"', each)[1] for each in seen]
        assert values == ["25", "50", "75", "100", "100"]
        assert "Running: 10 of 40 lines" in seen[0]
        assert "Done: 40 of 40 lines" in seen[-1]
        assert ['data-finished="yes"' in each for each in seen] == [False] * 4 + [True]
        assert (
            "Reload this page" not in staff.get(f"/admin/imports/import/{source.pk}/change/").content.decode()
        )

    def test_can_be_ended(self, staff):
        send(staff, numbered(40))
        source = Import.objects.get()
        address = f"/admin/imports/import/{source.pk}/cancel/"

        assert staff.get(address).status_code == 405
        assert "Import cancelled" in staff.post(address, follow=True).content.decode()
        run_import(import_id=str(source.pk))
        source.refresh_from_db()
        assert (source.status, Order.objects.count()) == ("cancelled", 0)

    def test_cannot_be_ended_afterwards(self, staff):
        send(staff, numbered(1))
        source = Import.objects.get()
        run_import(import_id=str(source.pk))
        page = staff.post(f"/admin/imports/import/{source.pk}/cancel/", follow=True).content.decode()
        assert "The import has ended already and cannot be cancelled" in page

    def test_needs_the_permission(self, staff):
        send(staff, numbered(1))
        source = Import.objects.get()
        client = Client()
        client.force_login(get_user_model().objects.create_user("clerk", is_staff=True))
        assert client.get(f"/admin/imports/import/{source.pk}/progress/").status_code == 403
        assert client.post(f"/admin/imports/import/{source.pk}/cancel/").status_code == 403
        source.refresh_from_db()
        assert source.status == "queued"

    def test_cannot_be_edited_or_deleted(self, staff):
        send(staff, numbered(1))
        source = Import.objects.get()
        assert staff.post(f"/admin/imports/import/{source.pk}/change/", {"status": "done"}).status_code == 403
        assert staff.post(f"/admin/imports/import/{source.pk}/delete/", {"post": "yes"}).status_code == 403
