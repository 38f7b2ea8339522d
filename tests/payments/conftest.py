from datetime import timedelta

import pytest

from payments.providers import provider
from tests.sandboxes import SandboxProcess


@pytest.fixture
def shop(sandbox: SandboxProcess, settings) -> SandboxProcess:
    """This process pays at the sandbox, and does not wait long for it."""
    settings.SANDBOX_URL = sandbox.url
    settings.PAYMENTS_READ_TIMEOUT = timedelta(seconds=2)
    provider.cache_clear()
    yield sandbox
    provider.cache_clear()
