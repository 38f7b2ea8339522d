from django import forms
from django.utils.translation import gettext_lazy as _

from .exceptions import InvalidPhoneNumber
from .models import Contact
from .phones import normalise


class ContactForm(forms.ModelForm):
    """A contact's number is kept in one spelling."""

    class Meta:
        model = Contact
        fields = ["user", "phone", "email"]

    def clean_phone(self) -> str:
        """:raises ValidationError: when it is no number."""
        if not (phone := self.cleaned_data["phone"]):
            return phone
        try:
            return normalise(phone)
        except InvalidPhoneNumber as error:
            raise forms.ValidationError(_("This is not a valid phone number")) from error
