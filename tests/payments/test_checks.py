"""Settings under which nobody could pay, or two would ask at once, are told at start."""

from datetime import timedelta

import pytest
from django.core import checks


def errors():
    return {message.id: message for message in checks.run_checks(tags=["payments"])}


class TestChecks:
    def test_find_nothing_wrong_with_the_shop_as_it_is(self):
        assert errors() == {}

    @pytest.mark.parametrize(
        ("seconds", "ids"), [(11, ["payments.E001"]), (12, ["payments.E001"]), (12.1, [])]
    )
    def test_tell_of_a_lease_that_ends_while_the_provider_is_asked(self, settings, seconds, ids):
        settings.PAYMENTS_CONNECT_TIMEOUT = timedelta(seconds=2)
        settings.PAYMENTS_READ_TIMEOUT = timedelta(seconds=10)
        settings.PAYMENTS_LEASE = timedelta(seconds=seconds)
        assert list(errors()) == ids

    def test_say_which_settings_are_too_long(self, settings):
        settings.PAYMENTS_LEASE = timedelta(seconds=1)
        hint = errors()["payments.E001"].hint
        assert "PAYMENTS_CONNECT_TIMEOUT + PAYMENTS_READ_TIMEOUT" in hint

    def test_tell_of_a_method_without_a_provider(self, settings):
        settings.PAYMENTS_METHODS = {**settings.PAYMENTS_METHODS, "cheque": "bank"}
        assert list(errors()) == ["payments.E002"]
        assert "'cheque' is for the provider 'bank'" in errors()["payments.E002"].msg

    @pytest.mark.parametrize(
        "path",
        ["payments.providers.nowhere", "payments.providers.sandbox.cheque", "stripe", "django.VERSION"],
    )
    def test_tell_of_a_provider_that_is_not_there(self, settings, path):
        settings.PAYMENTS_PROVIDERS = {**settings.PAYMENTS_PROVIDERS, "stripe": path}
        assert list(errors()) == ["payments.E003"]
        assert "PAYMENTS_PROVIDERS['stripe']" in errors()["payments.E003"].msg
