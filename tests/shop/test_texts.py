from pathlib import Path

import polib
from django.conf import settings

CATALOGUE = Path(settings.LOCALE_PATHS[0]) / "zh_Hans" / "LC_MESSAGES" / "django.po"


class TestChinese:
    def test_covers_every_text(self):
        catalogue = polib.pofile(CATALOGUE)
        assert [entry.msgid for entry in catalogue if not entry.translated()] == []

    def test_is_compiled(self):
        compiled = polib.mofile(CATALOGUE.with_suffix(".mo"))
        texts = {entry.msgid: entry.msgstr for entry in compiled}
        assert texts == {entry.msgid: entry.msgstr for entry in polib.pofile(CATALOGUE)}
