import pytest
from django.core.management import CommandError, call_command

from imports.models import Import
from imports.running import run_import
from orders.models import Order
from tests.imports.files import FILES, numbered, upload
from tests.shopping import shopper

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("config.urls"),
    pytest.mark.usefixtures("_shop"),
]


@pytest.fixture(autouse=True)
def _alice(_shop):
    shopper("alice")


def run(name, capsys, **options):
    call_command(
        "import_orders", str(FILES / name) if isinstance(name, str) else name, user="alice", **options
    )
    return capsys.readouterr().out


def test_prints_what_became_of_the_lines(capsys):
    printed = run("mixed_valid_invalid.csv", capsys).splitlines()

    assert (
        "mixed_valid_invalid.csv: done: created 3, updated 0, unchanged 0, skipped 0, rejected 3" in printed
    )
    assert [text.split(",")[0] for text in printed if text.startswith("line ")] == [
        "line 5",
        "line 6",
        "line 7",
    ]
    assert Order.objects.filter(user__username="alice").count() == 3


def test_knows_a_file_that_was_uploaded(capsys):
    upload(shopper("alice"), "base_orders.csv")
    assert "base_orders.csv: done (imported before): created 5" in run("base_orders.csv", capsys)
    assert (Import.objects.count(), Order.objects.count()) == (1, 5)


def test_imports_a_large_file_itself(capsys, settings, tmp_path):
    settings.IMPORTS_AT_ONCE = 1
    file = tmp_path / "large.csv"
    file.write_bytes(numbered(5))
    assert "large.csv: done: created 5" in run(file, capsys)


def test_goes_on_with_what_was_cut_off(capsys, settings):
    settings.IMPORTS_AT_ONCE = 0
    settings.IDEMPOTENCY_OUTBOX_RELAY_ON_COMMIT = False
    upload(shopper("alice"), "base_orders.csv")
    assert "done (imported before): created 5" in run("base_orders.csv", capsys)


def test_does_not_join_in_where_somebody_is_at_it(capsys, settings):
    settings.IMPORTS_AT_ONCE = 0
    settings.IDEMPOTENCY_OUTBOX_RELAY_ON_COMMIT = False
    upload(shopper("alice"), "base_orders.csv")
    refusals = []

    def meet(source):
        if not source.is_finished:
            with pytest.raises(CommandError) as refusal:
                run("base_orders.csv", capsys)
            refusals.append(str(refusal.value))

    run_import(import_id=str(Import.objects.get().pk), watch=meet)
    assert refusals == ["It is being imported right now: try again later."]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"file": "header_only.csv"}, "no_rows: "),
        ({"file": "missing.csv"}, "No such file"),
        ({"file": "base_orders.csv", "user": "nobody"}, "There is no user 'nobody'."),
        ({"file": "base_orders.csv", "period": "2026-11"}, "Only an incremental import has a period."),
    ],
)
def test_says_what_is_wrong(arguments, text):
    options = {"user": "alice", **arguments}
    with pytest.raises(CommandError, match=text):
        call_command("import_orders", str(FILES / options.pop("file")), **options)
    assert Import.objects.count() == 0
