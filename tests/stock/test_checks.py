import pytest
from django.core.checks import run_checks

from stock.strategies import STRATEGIES


def found():
    return [message.id for message in run_checks() if message.id.startswith("stock.")]


class TestStrategy:
    @pytest.mark.parametrize("name", STRATEGIES)
    def test_is_one_of_those_there_are(self, settings, name):
        settings.STOCK_STRATEGY = name
        assert found() == []

    @pytest.mark.parametrize("name", ["", "pessimistic", None])
    def test_is_nothing_else(self, settings, name):
        settings.STOCK_STRATEGY = name
        assert found() == ["stock.E001"]

    def test_is_not_left_out(self, settings):
        del settings.STOCK_STRATEGY
        assert found() == ["stock.E001"]
