"""Whose key it is, and who gets an answer."""

import pytest
from django.contrib.auth.models import User
from rest_framework.authtoken.models import Token

from tests.lab import effects
from tests.lab.callers import Caller
from tests.lab.models import Effect

pytestmark = pytest.mark.django_db


class TestScope:
    """KEY-03, KEY-04, SEC-05"""

    @pytest.mark.parametrize("path", ["does", "views/does"])
    def test_is_the_user(self, caller: Caller, stranger: Caller, path: str) -> None:
        answers = [
            each.post(path, key=key)
            for each, key in [(caller, "1"), (stranger, "1"), (stranger, "2"), (caller, "2")]
        ]

        assert [each.summary for each in answers] == [(201, False)] * 4
        assert (len(effects.done()), effects.records()) == (4, 4)

    def test_tells_nothing_of_a_foreign_key(self, caller: Caller, stranger: Caller) -> None:
        caller.post("does", {"quantity": 1}, key="in use")

        probes = [stranger.post("does", {"quantity": 2}, key=key) for key in ("in use", "not in use")]

        assert probes[0] == probes[1]

    def test_is_the_path_and_its_parameters(self, caller: Caller) -> None:
        answers = [caller.post(each) for each in ("does", "does/1", "does/2", "remembers", "views/does")]

        assert [each.summary for each in answers] == [(201, False)] * 5

    def test_is_the_method(self, caller: Caller) -> None:
        assert [caller.send(method, "does").summary for method in ("POST", "PATCH")] == [(201, False)] * 2

    def test_is_what_the_hook_says(self) -> None:
        answers = [Caller().post("scoped", headers={"X-Tenant": tenant}) for tenant in ("a", "b", "a")]

        assert [each.summary for each in answers] == [(201, False), (201, False), (201, True)]

    def test_is_never_shared_by_strangers(self) -> None:
        assert Caller().post("views/uploads").status == 500
        assert (effects.done(), effects.records()) == ([], 0)


class TestAccess:
    """SEC-01: what guards the view runs each time, before a claim or a replay."""

    def test_of_a_user_who_is_gone_is_refused(self, caller: Caller) -> None:
        caller.post("does")
        User.objects.update(is_active=False)

        refused = caller.post("does")

        assert refused.summary in [(401, False), (403, False)]
        assert b"data" not in refused.body

    def test_of_a_revoked_token_is_refused(self) -> None:
        token = Token.objects.create(user=User.objects.create(username="alice"))
        headers = {"Authorization": f"Token {token.key}"}
        Caller().post("does", headers=headers)
        token.delete()

        assert Caller().post("does", headers=headers).summary == (401, False)

    def test_that_is_refused_touches_no_key(self) -> None:
        assert Caller().post("does").status == 401
        assert effects.records() == 0

    def test_to_an_object_that_is_out_of_sight_is_refused(self, caller: Caller) -> None:
        effect = Effect.objects.create(name="mine")
        path = f"effects/{effect.pk}/rename"
        assert [caller.post(path).summary for _ in range(2)] == [(200, False), (200, True)]
        Effect.objects.filter(pk=effect.pk).update(name="hidden")

        assert caller.post(path).summary == (404, False)
