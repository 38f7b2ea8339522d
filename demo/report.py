"""The walk as tables: sent, answered, effects."""

from django.utils.translation import gettext as _
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .scenarios import SCENARIOS, Check, Step, Walk


def report(walk: Walk, console: Console) -> bool:
    """Walk through the scenarios, printing a table for each; tell whether every figure is right."""
    return all([_report_one(number, title, walk, console) for number, title in enumerate(SCENARIOS, start=1)])


def _report_one(number: int, title: object, walk: Walk, console: Console) -> bool:
    table = Table(
        title=f"{number}. {title}", title_justify="left", title_style="bold", box=box.ROUNDED, expand=True, show_lines=True
    )
    for name in (_("Sent"), _("Answered"), _("Effects")):
        table.add_column(name, ratio=1)
    steps = list(SCENARIOS[title](walk))
    for step in steps:
        table.add_row(step.sent, _figures(step.answered, step.note), _figures(step.effects))
    console.print(table)
    return all(check.holds for step in steps for check in _checks(step))


def _checks(step: Step) -> list[Check]:
    return [*step.answered, *step.effects]


def _figures(checks: list[Check], note: str = "") -> Text:
    lines = [_figure(check) for check in checks]
    return Text("\n").join([*lines, Text(note)] if note else lines)


def _figure(check: Check) -> Text:
    if check.holds:
        return Text.assemble(("✔ ", "green"), f"{check.name}: {check.seen}")
    wrong = _("✘ {name}: {seen}, expected {expected}").format(**vars(check))
    return Text(wrong, style="bold red")
