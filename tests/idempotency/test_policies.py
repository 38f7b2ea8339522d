from dataclasses import FrozenInstanceError
from datetime import timedelta
from typing import Any

import pytest

from idempotency.policies import DEFAULT, Policy


class TestPolicy:
    def test_follows_the_settings_of_the_moment(self, settings: Any) -> None:
        policy = Policy()
        settings.IDEMPOTENCY_RETENTION = timedelta(days=7)
        settings.IDEMPOTENCY_WAIT = timedelta(seconds=2)
        settings.IDEMPOTENCY_REQUIRED = False
        settings.IDEMPOTENCY_REMEMBER = [404]
        settings.IDEMPOTENCY_BODY_LIMIT = 10
        settings.IDEMPOTENCY_REPLAY_FIRST = True

        assert policy.resolve() == Policy(
            retention=timedelta(days=7),
            wait=timedelta(seconds=2),
            required=False,
            remember={404},
            body_limit=10,
            replay_first=True,
        )
        assert policy.retention is DEFAULT

    def test_has_defaults_without_any_setting(self) -> None:
        assert Policy().resolve() == Policy(
            retention=timedelta(hours=24),
            wait=timedelta(0),
            required=True,
            remember=(),
            body_limit=1024 * 1024,
            replay_first=False,
        )

    def test_keeps_what_it_says_itself(self, settings: Any) -> None:
        settings.IDEMPOTENCY_RETENTION = timedelta(days=7)

        assert Policy(retention=None).resolve().retention is None

    @pytest.mark.parametrize("status", [200, 201, 204, 299, 302, 303, 399])
    def test_keeps_every_2xx_and_3xx(self, status: int) -> None:
        assert Policy().resolve().keeps(status)

    @pytest.mark.parametrize("status", [100, 199, 400, 402, 404, 409, 499, 500, 503, 599])
    def test_keeps_nothing_else(self, status: int) -> None:
        assert not Policy().resolve().keeps(status)

    def test_keeps_the_4xx_that_it_names(self) -> None:
        policy = Policy(remember=[402]).resolve()

        assert policy.keeps(402)
        assert not policy.keeps(400)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"remember": {500}}, "a 5xx never"),
            ({"remember": {200}}, "kept anyway"),
            ({"retention": timedelta(0)}, "longer than zero"),
            ({"retention": timedelta(seconds=-1)}, "longer than zero"),
            ({"wait": timedelta(seconds=-1)}, "cannot be negative"),
            ({"headers": ("set-cookie",)}, "never kept"),
            ({"headers": ("Set-Cookie",)}, "never kept"),
        ],
    )
    def test_refuses_options_that_can_do_nothing_but_harm(self, options: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            Policy(**options)

    def test_refuses_a_setting_that_would_keep_a_5xx(self, settings: Any) -> None:
        settings.IDEMPOTENCY_REMEMBER = {503}

        with pytest.raises(ValueError, match="a 5xx never"):
            Policy().resolve()

    def test_refuses_an_option_that_there_is_not(self) -> None:
        with pytest.raises(TypeError):
            Policy(retain=timedelta(1))

    def test_cannot_be_changed(self) -> None:
        with pytest.raises(FrozenInstanceError):
            Policy().retention = None

    def test_takes_methods_in_any_case(self) -> None:
        assert Policy(methods=frozenset({"put"})).methods == {"PUT"}
