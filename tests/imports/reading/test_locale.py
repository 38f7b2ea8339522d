"""Each text about a file has its Chinese."""

import ast
from pathlib import Path
from string import Formatter

import polib
from django.utils import translation

import imports.reading.refusals
from imports.reading.refusals import reason, refusal

READING = Path(imports.reading.refusals.__file__).parent
CATALOGUE = READING.parent / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.mo"


def texts():
    calls = (
        node
        for file in READING.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "_"
    )
    return {ast.literal_eval(call.args[0]) for call in calls}


def placeholders(text):
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_every_text_is_translated_with_its_placeholders():
    catalogue = {entry.msgid: entry.msgstr for entry in polib.mofile(CATALOGUE)}

    assert len(texts()) > 40
    assert {text for text in texts() if not catalogue.get(text)} == set()
    assert {text for text in texts() if placeholders(text) != placeholders(catalogue[text])} == set()


def test_reasons_are_in_the_language_of_who_reads_them():
    refused, rejected = refusal("too_many_rows", limit=7), reason("contradicting", others="2, 3")

    with translation.override("zh-hans"):
        assert str(refused.reason) == "文件的数据行超过 7 行。请拆分文件。"
        assert str(rejected) == "同一订单号在第 2, 3 行的内容不同。"
    with translation.override("en"):
        assert str(refused.reason) == "The file has more than 7 data rows. Split it."
