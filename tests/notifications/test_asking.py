"""What a client may ask for, and how a telephone number may be spelt."""

import pytest

from notifications.models import Window
from tests.notifications.texting import post, statuses
from tests.shopping import shopper

pytestmark = [pytest.mark.django_db, pytest.mark.urls("config.urls")]


@pytest.fixture(autouse=True)
def _shop(texting):
    pass


@pytest.fixture
def alice():
    return shopper("alice")


class TestSpelling:
    def test_of_one_number_makes_one_text(self, alice, sandbox):
        """SMS-03"""
        for spelt in (
            "+86 138-0000-0991",
            "13800000991",
            "0086 13800000991",
            " 13800000991 ",
            "１３８００００0991",
        ):
            assert post(alice, spelt).status_code == 200
        assert len(sandbox.messages("+8613800000991")) == 1

    def test_keeps_a_zero_that_belongs_to_the_number(self, alice, sandbox):
        """SMS-03"""
        for spelt in ("010-12345678", "+39 06 698 12345"):
            assert post(alice, spelt).status_code == 200
        assert [len(sandbox.messages(number)) for number in ("+861012345678", "+390669812345")] == [1, 1]


class TestMistakes:
    @pytest.mark.parametrize(
        "spelt",
        ["", " ", "abc", "110", "138000000012", "1380000000", "13800000001\x00", "\u202a13800000001",
         "13800000001 ext 5", "1-800-FLOWERS", "1" * 5000, "\ud800", 13800000001, True, ["13800000001"], {}],
    )  # fmt: skip
    def test_a_number_that_is_none(self, alice, spelt):
        answer = post(alice, spelt)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_phone_number")
        assert statuses() == []

    @pytest.mark.parametrize(
        ("members", "field"),
        [
            ({"phone": ...}, "phone"),
            ({"phone": None}, "phone"),
            ({"template": ...}, "template"),
            ({"kind": ...}, "biz_id"),
            ({"kind": None, "biz_id": None}, "biz_id"),
            ({"kind": "notification"}, "biz_id"),
            ({"kind": "marketing"}, "campaign_id"),
            ({"kind": "marketing", "campaign_id": ""}, "campaign_id"),
            ({"kind": "birthday"}, "kind"),
            ({"kind": ""}, "kind"),
            ({"kind": "receipt", "biz_id": "1"}, "kind"),
            ({"kind": ["verification"]}, "kind"),
            ({"template": "a b"}, "template"),
            ({"template": "T" * 65}, "template"),
            ({"template": 7}, "template"),
            ({"template": "T\n"}, "template"),
            ({"biz_id": "1\x00"}, "biz_id"),
            ({"biz_id": " 1"}, "biz_id"),
            ({"biz_id": "1" * 65}, "biz_id"),
            ({"biz_id": "\ud800"}, "biz_id"),
            ({"biz_id": {"a": 1}}, "biz_id"),
        ],
    )
    def test_are_named_by_their_field(self, alice, phone, sandbox, members, field):
        answer = post(alice, members.pop("phone", phone), **members)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
        assert [error["pointer"] for error in answer.json()["errors"]] == [f"#/{field}"]
        assert (sandbox.messages(phone), statuses(), Window.objects.count()) == ([], [], 0)

    @pytest.mark.parametrize(
        "body", [b"", b"[]", b"null", b"7", b'"x"', b"{", b'{"phone": \xff}', b"[" * 100000]
    )
    def test_odd_bodies(self, alice, body):
        answer = alice.post("/api/sms", body, content_type="application/json")
        assert (answer.status_code, statuses()) == (400, [])
