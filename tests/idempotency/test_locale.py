"""Each text that people see has its Chinese."""

import ast
from gettext import GNUTranslations
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from django.utils import translation

import idempotency.conf

LIBRARY = Path(idempotency.conf.__file__).parent
CATALOGUE = LIBRARY / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.mo"
MARKERS = {"_", "gettext", "gettext_lazy", "ngettext"}


def texts() -> set[str]:
    """The texts that are marked for translation."""
    calls = [
        node
        for file in LIBRARY.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in MARKERS
    ]
    return {ast.literal_eval(call.args[0]) for call in calls}


@pytest.fixture(scope="module")
def catalogue() -> GNUTranslations:
    with CATALOGUE.open("rb") as file:
        return GNUTranslations(file)


def chinese(catalogue: GNUTranslations, text: str) -> str:
    singular = catalogue.gettext(text)
    return singular if singular != text else catalogue.ngettext(text, text, 1)


def test_every_text_is_translated(catalogue: GNUTranslations) -> None:
    assert texts()
    assert {text for text in texts() if chinese(catalogue, text) == text} == set()


def test_nothing_is_translated_that_nobody_says(catalogue: GNUTranslations) -> None:
    known = {text if isinstance(text, str) else text[0] for text in catalogue._catalog if text}

    assert known <= texts()


def test_placeholders_are_kept(catalogue: GNUTranslations) -> None:
    for text in texts():
        assert placeholders(chinese(catalogue, text)) == placeholders(text)


def placeholders(text: str) -> Any:
    braces = {name for _, name, _, _ in Formatter().parse(text) if name}
    return braces, text.count("%(count)"), text.count("%(span)")


def test_a_running_operation_is_said_as_agreed() -> None:
    with translation.override("zh-hans"):
        title = translation.gettext("The request is being processed, please wait")

    assert title == "请求处理中，请稍候"
