"""The scenarios' settings, with gates within a payment."""

from datetime import timedelta

from tests.scenarios.settings import *  # noqa: F403
from tests.scenarios.settings import MIDDLEWARE

MIDDLEWARE = [*MIDDLEWARE, "tests.scenarios.payment_gates.PaymentGateMiddleware"]
PAYMENTS_CONNECT_TIMEOUT = timedelta(seconds=1)  # with the reading it must end before the lease
