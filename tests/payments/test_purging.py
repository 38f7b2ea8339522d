"""``manage.py purge_notices``"""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from payments.models import WAITING, Fate, Notice
from payments.purging import purge_contents

pytestmark = pytest.mark.django_db

NOW = timezone.now()


def notice(number, *, days=200, fate=Fate.APPLIED, settled_days=None):
    return Notice.objects.create(
        provider="stripe",
        event_no=f"evt_{number}",
        event_type="payment_intent.succeeded",
        kind="PAID",
        order_no="SO-1",
        payment_no=f"pi_{number}",
        amount_minor=3980,
        currency="CNY",
        fate=fate,
        content='{"buyer": "2088"}',
        received_at=NOW - timedelta(days=days),
        settled_at=None if settled_days is None else NOW - timedelta(days=settled_days),
    )


def full():
    return set(Notice.objects.exclude(content="").values_list("event_no", flat=True))


def purge(*arguments):
    output = StringIO()
    call_command("purge_notices", *arguments, stdout=output)
    return output.getvalue().strip()


class TestPurge:
    def test_empties_old_contents_and_keeps_the_rest_of_the_row(self):
        old = notice(1)
        notice(2, days=179)
        assert purge() == "1 emptied"
        assert full() == {"evt_2"}
        present = Notice.objects.values().get(pk=old.pk)
        kept = Notice(**present | {"content": old.content})
        assert {field.attname: getattr(kept, field.attname) for field in Notice._meta.fields} == {
            field.attname: getattr(old, field.attname) for field in Notice._meta.fields
        }

    @pytest.mark.parametrize("fate", WAITING)
    def test_leaves_what_waits_alone(self, fate):
        notice(1, days=10_000, fate=fate)
        assert purge() == "0 emptied"
        assert full() == {"evt_1"}

    @pytest.mark.parametrize("fate", sorted(set(Fate) - set(WAITING)))
    def test_empties_what_is_settled_whatever_became_of_it(self, fate):
        notice(1, fate=fate)
        assert purge() == "1 emptied"

    def test_counts_from_when_a_waiting_one_was_settled(self):
        notice(1, days=10_000, settled_days=179)
        notice(2, days=10_000, settled_days=181)
        assert purge() == "1 emptied"
        assert full() == {"evt_1"}

    def test_takes_the_days_that_it_is_given(self, settings):
        for number, days in enumerate([1, 3, 5]):
            notice(number, days=days)
        assert purge("--older-than", "4") == "1 emptied"
        settings.PAYMENTS_NOTICE_RETENTION = timedelta(days=2)
        assert purge() == "1 emptied"
        assert purge("--older-than", "0") == "1 emptied"

    @pytest.mark.parametrize("days", ["-1", "nan", "inf", "36501"])
    def test_refuses_what_is_no_number_of_days(self, days):
        notice(1)
        with pytest.raises(CommandError, match="--older-than"):
            purge(f"--older-than={days}")
        assert full() == {"evt_1"}

    def test_is_done_in_small_batches_and_then_nothing(self):
        for number in range(5):
            notice(number)
        assert list(purge_contents(before=NOW, batch_size=2)) == [2, 2, 1]
        with CaptureQueriesContext(connection) as queries:
            assert list(purge_contents(before=NOW)) == []
        assert len(queries) == 1
