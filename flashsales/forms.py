from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from orders.models import Article

from . import services
from .exceptions import SalesOverlap
from .models import FlashSale


class FlashSaleForm(forms.ModelForm):
    """Opens a sale."""

    class Meta:
        model = FlashSale
        fields = ["sku", "units", "starts_at", "ends_at"]

    def clean_units(self) -> int:
        """:raises ValidationError: when there is nothing to sell."""
        if self.cleaned_data["units"] < 1:
            raise forms.ValidationError(_("A sale has at least one unit."))
        return self.cleaned_data["units"]

    def clean_sku(self) -> str:
        """:raises ValidationError: when the shop does not sell it."""
        if not Article.objects.filter(sku=self.cleaned_data["sku"]).exists():
            raise forms.ValidationError(_("There is no such article."))
        return self.cleaned_data["sku"]

    def clean(self) -> dict[str, Any]:
        """:raises ValidationError: when the span is none, or the article has another sale in it."""
        data = super().clean()
        if {"sku", "starts_at", "ends_at"} <= data.keys():
            self._check_span(data["sku"], data["starts_at"], data["ends_at"])
        return data

    def save(self, commit: bool = True) -> FlashSale:
        """Open the sale; it is in the database afterwards, whatever ``commit`` says.

        :raises SalesOverlap: when another one was opened since the form was checked.
        """
        self.instance = services.open_sale(**self.cleaned_data, now=timezone.now())
        self.save_m2m = lambda: None
        return self.instance

    def _check_span(self, sku: str, starts_at: Any, ends_at: Any) -> None:
        if ends_at <= starts_at:
            raise forms.ValidationError(_("A sale ends after it has begun."))
        if FlashSale.objects.overlapping(sku=sku, starts_at=starts_at, ends_at=ends_at).exists():
            raise forms.ValidationError(_("The article has another sale at that time."), SalesOverlap.code)
