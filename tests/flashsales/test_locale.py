"""Each text of the app has its Chinese."""

import ast
from pathlib import Path
from string import Formatter

import polib

import flashsales.apps

APP = Path(flashsales.apps.__file__).parent
CATALOGUE = APP / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"


def texts():
    """The texts that are marked for translation."""
    calls = (
        node
        for file in APP.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "_"
    )
    return {ast.literal_eval(call.args[0]) for call in calls}


def placeholders(text):
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_every_text_is_translated_and_nothing_else():
    catalogue = {entry.msgid: entry.msgstr for entry in polib.pofile(CATALOGUE)}
    assert catalogue.keys() == texts()
    assert all(catalogue.values())
    assert {text for text in catalogue if placeholders(text) != placeholders(catalogue[text])} == set()


def test_the_catalogue_is_compiled():
    compiled = {entry.msgid: entry.msgstr for entry in polib.mofile(CATALOGUE.with_suffix(".mo"))}
    assert compiled == {entry.msgid: entry.msgstr for entry in polib.pofile(CATALOGUE)}
