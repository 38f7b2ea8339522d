from django import forms
from django.core.validators import RegexValidator
from django.utils.translation import gettext_lazy as _

from .models import Mode
from .serializers import PERIOD


class UploadForm(forms.Form):
    """A file and what it is for."""

    file = forms.FileField(
        label=_("File"),
        help_text=_("CSV or .xlsx, with one order in each line."),
        allow_empty_file=True,  # the reader says why it is none
        widget=forms.ClearableFileInput(attrs={"accept": ".csv,.xlsx"}),
    )
    mode = forms.ChoiceField(label=_("Mode"), choices=Mode.choices, initial=Mode.BATCH)
    period = forms.CharField(
        label=_("Period"),
        required=False,
        max_length=32,
        validators=[RegexValidator(rf"\A{PERIOD}\Z")],
        help_text=_("Of an incremental file, such as 2026-11: the same file may come once for each."),
    )

    def clean(self) -> dict[str, object]:
        """Refuse a period that would count for nothing."""
        cleaned = super().clean()
        if cleaned.get("period") and cleaned.get("mode") != Mode.INCREMENTAL:
            self.add_error("period", _("Only an incremental import has a period."))
        return cleaned
