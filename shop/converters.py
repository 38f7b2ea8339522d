"""Path converters."""

from django.urls import register_converter
from django.urls.converters import StringConverter


class CodeConverter(StringConverter):
    """A number or code in an address: PostgreSQL takes no text with a NUL in it."""

    regex = r"[^/\x00]+"


register_converter(CodeConverter, "code")
