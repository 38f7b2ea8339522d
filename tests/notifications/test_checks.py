from datetime import timedelta

import pytest

from notifications.checks import check_lease


class TestLease:
    @pytest.mark.parametrize(
        ("lease", "ids"), [(13, []), (12, ["notifications.E001"]), (3, ["notifications.E001"])]
    )
    def test_is_longer_than_a_call_may_take(self, settings, lease, ids):
        settings.NOTIFICATIONS_CONNECT_TIMEOUT = timedelta(seconds=2)
        settings.NOTIFICATIONS_READ_TIMEOUT = timedelta(seconds=10)
        settings.NOTIFICATIONS_LEASE = timedelta(seconds=lease)
        assert [error.id for error in check_lease()] == ids
        assert all(error.hint for error in check_lease())
