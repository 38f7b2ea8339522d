"""The walk as tables: sent, answered, effects."""

from typing import Any

from django.utils.translation import gettext as _
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .scenarios import SCENARIOS, Check, Scenario, Step, Walk


def report(walk: Walk, console: Console) -> bool:
    """Walk through the scenarios, printing a table for each; tell whether every figure is right."""
    right = [
        _report_one(number, scenario, walk, console) for number, scenario in enumerate(SCENARIOS, start=1)
    ]
    return all(right)


def _report_one(number: int, scenario: tuple[Any, Scenario], walk: Walk, console: Console) -> bool:
    title, run = scenario
    table = Table(title=f"{number}. {title}", title_justify="left", title_style="bold", show_lines=True)
    table.box, table.expand = box.ROUNDED, True
    for name in (_("Sent"), _("Answered"), _("Effects")):
        table.add_column(name, ratio=1, overflow="fold")  # Chinese has no spaces to break at
    steps = list(run(walk))
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
