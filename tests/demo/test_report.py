"""What the walk says before and after its tables."""

from io import StringIO

import pytest
from django.utils import translation
from rich.cells import cell_len
from rich.console import Console

from demo.report import report
from demo.walk import Check, Step


def printed(monkeypatch, *figures, width=100):
    """The output of a walk of one scenario for each list of figures, and what the report returned."""
    scenarios = [
        (f"Trouble {number}", lambda walk, steps=steps: [Step("sent", steps)])
        for number, steps in enumerate(figures)
    ]
    monkeypatch.setattr("demo.report.SCENARIOS", scenarios)
    console = Console(file=StringIO(), width=width)
    right = report(None, console)
    return console.file.getvalue().splitlines(), right


RIGHT, WRONG = Check("orders", 1, 1), Check("orders", 2, 1)


class TestHeading:
    def test_says_how_much_follows(self, monkeypatch):
        lines, _ = printed(monkeypatch, [RIGHT], [RIGHT], [RIGHT])
        assert "Once, however often it is asked for" in lines[0]
        assert "3 scenarios follow" in lines[1]


class TestSummary:
    def test_counts_scenarios_and_figures(self, monkeypatch):
        lines, right = printed(monkeypatch, [RIGHT, RIGHT], [RIGHT])
        assert right is True
        assert lines[-1].rstrip() == "✔ 2 scenarios, 3 figures: all right"

    def test_names_the_scenarios_that_went_wrong(self, monkeypatch):
        lines, right = printed(monkeypatch, [RIGHT, WRONG], [RIGHT], [WRONG])
        assert right is False
        assert lines[-1].rstrip() == "✘ 3 scenarios, 4 figures; wrong: 1. Trouble 0; 3. Trouble 2"

    @pytest.mark.parametrize(
        ("figures", "told"),
        [([RIGHT], "✔ 1 个场景，1 项数据：全部正确"), ([WRONG], "✘ 1 个场景，1 项数据；有误：1. Trouble 0")],
    )
    def test_is_told_in_chinese_and_fits_a_narrow_terminal(self, monkeypatch, figures, told):
        with translation.override("zh-hans"):
            lines, _ = printed(monkeypatch, figures, width=80)
        assert lines[-1].rstrip() == told
        assert "无论请求多少次，只执行一次" in lines[0]
        assert {cell_len(line) for line in lines} == {80}
