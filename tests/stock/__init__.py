import pytest

SERVERS = [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("postgresql", "mariadb")]
"""The databases that serve writers at the same time."""
