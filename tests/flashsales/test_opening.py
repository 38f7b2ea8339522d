"""Staff open a sale by a command or in the admin; nobody changes one afterwards."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from io import StringIO

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import connection, connections, transaction
from django.utils import timezone

from flashsales import services
from flashsales.exceptions import SalesOverlap
from flashsales.models import FlashSale, Ticket
from orders.models import Article
from tests.flashsales.selling import HOUR, SKU, another_sale, buy, end, left, open_sale
from tests.servers.private import wait_until
from tests.shopping import sell

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("gated")]


def command(*arguments):
    out = StringIO()
    call_command("open_flash_sale", SKU, *arguments, stdout=out)
    return out.getvalue()


class TestService:
    def test_loads_the_gate(self):
        open_sale(units=3)
        assert left() == 3

    def test_refuses_a_sale_beside_another(self):
        open_sale(units=3)
        with pytest.raises(SalesOverlap):
            another_sale(units=5)
        assert (FlashSale.objects.get().units, left()) == (3, 3)

    @pytest.mark.postgresql
    def test_opens_one_of_two_at_once(self):
        sell()

        def attempt():
            try:
                return another_sale(units=5)
            except SalesOverlap as refused:
                return refused.code
            finally:
                connections.close_all()

        with ThreadPoolExecutor() as pool, transaction.atomic():  # the commit comes before the pool's end
            another_sale(units=3)
            second = pool.submit(attempt)
            wait_until(partial(self.check_waits, second), alive=lambda: True)
            assert not second.done()
        assert second.result() == "sales_overlap"
        assert (FlashSale.objects.get().units, left()) == (3, 3)

    def check_waits(self, second):
        """The second waits for the first, or did not have to."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            assert second.done() or cursor.fetchone()[0]

    def test_refuses_what_the_shop_does_not_sell(self):
        now = timezone.now()
        with pytest.raises(Article.DoesNotExist):
            services.open_sale(sku="NO-SUCH", units=1, starts_at=now, ends_at=now + HOUR, now=now)
        assert FlashSale.objects.count() == 0

    def test_starts_a_next_sale_afresh(self):
        end(open_sale(units=3))
        buyer = Ticket.objects.count()
        another_sale(units=5, begins_in=HOUR * 0)
        buy()
        assert (buyer, left()) == (0, 4)


class TestCommand:
    def test_opens_a_sale_for_a_day(self):
        sell()
        assert command("--units", "3").startswith("TEA-100 × 3: from ")
        sale = FlashSale.objects.get()
        assert (sale.units, sale.ends_at - sale.starts_at) == (3, timedelta(days=1))
        assert left() == 3

    def test_takes_a_time(self):
        sell()
        command("--units", "3", "--starts", "2099-11-30T20:00:00+08:00", "--hours", "0.5")
        sale = FlashSale.objects.get()
        assert sale.starts_at.isoformat() == "2099-11-30T12:00:00+00:00"
        assert sale.ends_at - sale.starts_at == timedelta(minutes=30)

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--units", "0"],
            ["--units", "3", "--hours", "0"],
            ["--units", "3", "--starts", "soon"],
        ],
        ids=" ".join,
    )
    def test_refuses_nonsense(self, arguments):
        sell()
        with pytest.raises(CommandError):
            command(*arguments)
        assert FlashSale.objects.count() == 0

    def test_refuses_a_sale_beside_another(self):
        open_sale(units=3)
        with pytest.raises(CommandError, match="another sale"):
            command("--units", "5")
        assert FlashSale.objects.get().units == 3

    def test_refuses_an_unknown_article(self):
        with pytest.raises(CommandError, match="no article"):
            command("--units", "5")
        assert FlashSale.objects.count() == 0


class TestAdmin:
    @pytest.fixture
    def admin(self, client):
        client.force_login(get_user_model().objects.create_superuser("admin"))
        return client

    def form(self, **changes):
        return {
            "sku": SKU,
            "units": "3",
            "starts_at_0": "2099-11-30",
            "starts_at_1": "20:00:00",
            "ends_at_0": "2099-11-30",
            "ends_at_1": "21:00:00",
            **changes,
        }

    def test_opens_a_sale(self, admin):
        sell()
        assert admin.get("/admin/flashsales/flashsale/add/").status_code == 200
        answer = admin.post("/admin/flashsales/flashsale/add/", self.form())
        assert (answer.status_code, FlashSale.objects.get().units, left()) == (302, 3, 3)

    @pytest.mark.parametrize(
        "changes", [{"sku": "NO-SUCH"}, {"units": "0"}, {"ends_at_1": "20:00:00"}, {"ends_at_1": ""}], ids=str
    )
    def test_refuses_nonsense(self, admin, changes):
        sell()
        answer = admin.post("/admin/flashsales/flashsale/add/", self.form(**changes))
        assert (answer.status_code, FlashSale.objects.count()) == (200, 0)

    def test_refuses_a_sale_beside_another(self, admin):
        sell()
        for _ in range(2):
            answer = admin.post("/admin/flashsales/flashsale/add/", self.form())
        assert answer.status_code == 200
        assert FlashSale.objects.count() == 1

    def test_changes_and_deletes_nothing(self, admin):
        sale = open_sale()
        page = f"/admin/flashsales/flashsale/{sale.pk}"
        assert admin.get(f"{page}/change/").status_code == 200
        assert admin.post(f"{page}/change/", self.form(units="9")).status_code == 403
        assert admin.post(f"{page}/delete/", {"post": "yes"}).status_code == 403
        assert FlashSale.objects.get().units == 3

    def test_lists_tickets(self, admin):
        open_sale()
        ticket = buy()
        page = admin.get("/admin/flashsales/ticket/")
        assert str(ticket.number) in page.content.decode()
        assert admin.get("/admin/flashsales/flashsale/").status_code == 200
        assert admin.get("/admin/flashsales/ticket/add/").status_code == 403
        assert admin.get("/admin/flashsales/ticket/?q=alice").status_code == 200
