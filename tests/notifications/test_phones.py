import pytest

from notifications.exceptions import InvalidPhoneNumber
from notifications.phones import masked, normalise


class TestNormalise:
    @pytest.mark.parametrize(
        ("typed", "number"),
        [
            ("13800138000", "+8613800138000"),
            ("+86 138 0013 8000", "+8613800138000"),
            ("0086-138-0013-8000", "+8613800138000"),
            ("(010) 12345678", "+861012345678"),
            ("+39 06 698 12345", "+390669812345"),
            ("+44 7400 123456", "+447400123456"),
            ("+1 415 555 0123", "+14155550123"),
        ],
    )
    def test_is_e164(self, typed, number):
        assert normalise(typed) == number == normalise(number)

    def test_takes_the_country_of_the_shop(self, settings):
        settings.NOTIFICATIONS_REGION = "GB"
        assert normalise("07400 123456") == "+447400123456"

    @pytest.mark.parametrize(
        "typed", ["", "+", "95588", "0013800000001", "+39 6 69812345", "tel:13800000001"]
    )
    def test_refuses_what_is_no_number(self, typed):
        with pytest.raises(InvalidPhoneNumber):
            normalise(typed)


class TestMasked:
    @pytest.mark.parametrize(
        ("recipient", "shown"),
        [
            ("+8613800138000", "+86138****8000"),
            ("+4912345", "****"),
            ("alice@example.com", "a…@example.com"),
        ],
    )
    def test_hides_the_middle(self, recipient, shown):
        assert masked(recipient) == shown
