"""The walk as tables: sent, answered, effects."""

from django.utils.translation import gettext as _
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from .scenarios import SCENARIOS, Scenario
from .walk import Check, Walk


def report(walk: Walk, console: Console) -> bool:
    """Walk through the scenarios, printing a table for each; tell whether every figure is right."""
    console.print(_heading())
    checks = {
        title: _report_one(title, scenario, walk, console)
        for title, scenario in (
            (f"{number}. {title}", run) for number, (title, run) in enumerate(SCENARIOS, 1)
        )
    }
    wrong = [title for title, found in checks.items() if not all(check.holds for check in found)]
    console.print(Padding(_summary(checks, wrong), expand=True))
    return not wrong


def _heading() -> Panel:
    text = _(
        "{count} scenarios follow: what goes wrong between a client, the shop and its providers. "
        "Each one sends real requests to a real server, then counts in the database and at the providers "
        "what they did. "
        "✔ is a figure that is right, ✘ one that is wrong."
    )
    title = Text(_("Once, however often it is asked for"), style="bold")
    return Panel(text.format(count=len(SCENARIOS)), title=title, title_align="left", padding=(0, 1))


def _summary(checks: dict[str, list[Check]], wrong: list[str]) -> Text:
    figures = sum(map(len, checks.values()))
    if wrong:
        text = _("✘ {count} scenarios, {figures} figures; wrong: {wrong}")
        told = text.format(count=len(checks), figures=figures, wrong="; ".join(wrong))
        return Text(told, style="bold red")
    text = _("✔ {count} scenarios, {figures} figures: all right")
    return Text(text.format(count=len(checks), figures=figures), style="bold green")


def _report_one(title: str, run: Scenario, walk: Walk, console: Console) -> list[Check]:
    table = Table(title=title, title_justify="left", title_style="bold", show_lines=True)
    table.box, table.expand = box.ROUNDED, True
    for name in (_("Sent"), _("Answered"), _("Effects")):
        table.add_column(name, ratio=1, overflow="fold")  # Chinese has no spaces to break at
    steps = list(run(walk))
    for step in steps:
        table.add_row(step.sent, _figures(step.answered, step.note), _figures(step.effects))
    console.print(table)
    return [check for step in steps for check in (*step.answered, *step.effects)]


def _figures(checks: list[Check], note: str = "") -> Text:
    lines = [_figure(check) for check in checks]
    return Text("\n").join([*lines, Text(note)] if note else lines)


def _figure(check: Check) -> Text:
    if check.holds:
        return Text.assemble(("✔ ", "green"), f"{check.name}: {check.seen}")
    wrong = _("✘ {name}: {seen}, expected {expected}").format(**vars(check))
    return Text(wrong, style="bold red")
