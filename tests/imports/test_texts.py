"""Each text of the app has its Chinese, in the shop's catalogue."""

import ast
import re
from pathlib import Path

import polib
from django.conf import settings

import imports.apps

APP = Path(imports.apps.__file__).parent
CATALOGUE = Path(settings.LOCALE_PATHS[0]) / "zh_Hans" / "LC_MESSAGES" / "django.po"
IN_TEMPLATES = re.compile(
    r"""{% translate (?:'([^']*)'|"([^"]*)") %}|{% blocktranslate[^%]*%}([^{]*){% plural"""
)


def in_code():
    return {
        ast.literal_eval(node.args[0])
        for file in APP.rglob("*.py")
        if "reading" not in file.parts
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "_"
    }


def in_templates():
    return {
        next(filter(None, found))
        for file in APP.rglob("*.html")
        for found in IN_TEMPLATES.findall(file.read_text())
    }


def test_every_text_is_translated():
    known = {entry.msgid for entry in polib.pofile(CATALOGUE) if entry.translated()}

    assert len(in_code()) > 50
    assert len(in_templates()) > 10
    assert (in_code() | in_templates()) - known == set()
