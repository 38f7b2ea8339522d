from collections.abc import Iterator
from datetime import timedelta
from itertools import count

import pytest

from notifications.providers import provider
from tests.sandboxes import SandboxProcess

numbers = count(13800001000)


@pytest.fixture
def texting(sandbox: SandboxProcess, settings) -> Iterator[SandboxProcess]:
    """This process sends at the sandbox, and does not wait long for it."""
    settings.SANDBOX_URL = sandbox.url
    settings.NOTIFICATIONS_READ_TIMEOUT = timedelta(seconds=1)
    provider.cache_clear()
    yield sandbox
    provider.cache_clear()


@pytest.fixture
def phone() -> str:
    """A number that nobody has been sent anything to."""
    return f"+86{next(numbers)}"
