"""The scenarios' settings, with gates within a payment."""

from tests.scenarios.settings import *  # noqa: F403
from tests.scenarios.settings import MIDDLEWARE

MIDDLEWARE = [*MIDDLEWARE, "tests.scenarios.payment_gates.PaymentGateMiddleware"]
