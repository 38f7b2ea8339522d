"""The scenarios' settings, with gates within the sending of a text."""

from tests.scenarios.settings import *  # noqa: F403
from tests.scenarios.settings import MIDDLEWARE

MIDDLEWARE = [*MIDDLEWARE, "tests.notifications.gates.TextGateMiddleware"]
