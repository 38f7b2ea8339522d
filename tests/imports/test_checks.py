from datetime import timedelta

from imports.checks import check_lease


class TestLease:
    def test_is_longer_than_reading_may_take(self, settings):
        settings.IMPORTS_MAX_SECONDS = 30
        settings.IMPORTS_LEASE = timedelta(seconds=31)
        assert check_lease() == []

        settings.IMPORTS_LEASE = timedelta(seconds=30)
        assert [error.id for error in check_lease()] == ["imports.E001"]
